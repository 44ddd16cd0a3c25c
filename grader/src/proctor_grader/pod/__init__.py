"""What runs around an agent or a script: files in, files out. On Kubernetes each runs in a pod."""
