"""What is learned: networks, losses and scores."""
