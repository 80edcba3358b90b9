"""`accord bench learning`: replica training against plain PyG."""
