"""Names of spans and attributes, by version 1.41.0 of OpenTelemetry's semantic conventions for generative AI. Pure.

That is the last version in which they are part of the general conventions; they are in development still.
"""

from typing import Literal

VERSION = "1.41.0"
SCHEMA_URL = f"https://opentelemetry.io/schemas/{VERSION}"
SCOPE = "tertulia"

Operation = Literal["invoke_agent", "chat", "execute_tool", "retrieval"]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
ERROR = "error.type"

REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"  # seconds

INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
CACHE_CREATION = "gen_ai.usage.cache_creation.input_tokens"
REASONING = "gen_ai.usage.reasoning.output_tokens"

TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL = "gen_ai.tool.call.id"
DATA_SOURCE = "gen_ai.data_source.id"

# What the conventions let only an owner choose: it holds what people and models wrote.
INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
QUERY = "gen_ai.retrieval.query.text"
DOCUMENTS = "gen_ai.retrieval.documents"

# Our own, of which the conventions know nothing.
RUN = "tertulia.run.id"
STEP = "tertulia.step"
ATTEMPT = "tertulia.attempt"
RECALLED = "tertulia.recalled"  # things
DOLLARS = "tertulia.dollars"  # where the price is known

PROVIDERS = {"gemini": "gcp.gemini", "mistral": "mistral_ai"}  # of ours that are called otherwise there
OTHER = "_OTHER"
