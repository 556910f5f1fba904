"""Our values as other libraries' and back."""
