"""What is remembered of people and of what happened, with receipts."""
