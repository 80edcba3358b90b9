"""What is chosen on validation data: how node and edge network combine."""
