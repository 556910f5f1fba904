"""Other programs' formats: prompts in their layout, importers, and the grammars that clean them out of replies."""
