"""How it is learned: replicas, the training loop, checkpoints."""
