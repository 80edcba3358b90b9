"""What a fitted model says about graphs: labels, probabilities, how far to trust them, and why."""
