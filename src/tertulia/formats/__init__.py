"""Other programs' formats: prompts in their layout, histories that they stored, and grammars of their markup.

They are here so that a bot of another program can move to Tertulia with its prompts and its history. A bot with one of
our own profiles uses none of them but `meta_grammar`.

| format | written by | read by |
|---|---|---|
| context block: `user [meta] user_id=5: text`, a line a message | `context_block` (profile `block`) | `meta_grammar` |
| `[meta] key=value` and `[speaker key=value]` before a text | `context_block.meta_header` | `meta`, `meta_grammar` |
| one message with its quote in words, of OpenAI-compatible bots | `single` (profile `single`) | |
| `messageContent` and `referencedMessage`, the same as JSON | | `references` (`tertulia render`) |
| compact lines: `Alice#987654: text` | | `compact` |
| lists of google-genai and of OpenAI | `tertulia.models.gemini.sdk.to_contents` | `lists` |
| a conversation as one JSON document (ours) | `importers.as_document` | `document` (`tertulia render`) |

`importers` chooses among the readers, for `tertulia import`. With `meta_grammar` the cleaner removes what a
model repeats of these formats from replies.
"""
