"""What is recorded of tensors on an accelerator without waiting for it."""
