"""The fused CPU kernel in C++: built on first use, kept in the user's cache."""
