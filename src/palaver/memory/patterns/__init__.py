"""What people say of themselves, found by patterns: English and Ukrainian."""
