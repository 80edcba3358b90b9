"""The search over settings: what it tries, for how long, its trials, and where they are stored."""
