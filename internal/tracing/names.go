package tracing

import "go.opentelemetry.io/otel/attribute"

// Names of spans. Those of requests, model calls and tools are followed by their target, as in "tools/call search" or
// "chat gpt-5".
const (
	SpanQuery     = "process_query"
	SpanPlanning  = "planning"
	SpanExecution = "execution"
	SpanSynthesis = "synthesis"
	SpanSearch    = "search_tools"
	SpanTool      = "execute_tool"
)

// Attributes of the OpenTelemetry semantic conventions for generative AI and MCP
// (https://github.com/open-telemetry/semantic-conventions-genai, 2026-07), which are in development, and of the
// general conventions that they use.
const (
	MethodName      = attribute.Key("mcp.method.name")
	ProtocolVersion = attribute.Key("mcp.protocol.version")
	ResourceURI     = attribute.Key("mcp.resource.uri") // content
	RequestID       = attribute.Key("jsonrpc.request.id")
	StatusCode      = attribute.Key("rpc.response.status_code")
	ErrorType       = attribute.Key("error.type")
	Transport       = attribute.Key("network.transport")
	ServerAddress   = attribute.Key("server.address")
	ServerPort      = attribute.Key("server.port")

	Operation      = attribute.Key("gen_ai.operation.name")
	AgentName      = attribute.Key("gen_ai.agent.name")
	ToolName       = attribute.Key("gen_ai.tool.name")
	PromptName     = attribute.Key("gen_ai.prompt.name")
	ToolArguments  = attribute.Key("gen_ai.tool.call.arguments") // content
	ToolResult     = attribute.Key("gen_ai.tool.call.result")    // content
	Provider       = attribute.Key("gen_ai.provider.name")
	RequestModel   = attribute.Key("gen_ai.request.model")
	InputTokens    = attribute.Key("gen_ai.usage.input_tokens")
	OutputTokens   = attribute.Key("gen_ai.usage.output_tokens")
	Instructions   = attribute.Key("gen_ai.system_instructions") // content
	InputMessages  = attribute.Key("gen_ai.input.messages")      // content
	OutputMessages = attribute.Key("gen_ai.output.messages")     // content
)

// Values of the conventions.
const (
	OperationAgent  = "invoke_agent"
	OperationPlan   = "plan"
	OperationTool   = "execute_tool"
	OperationChat   = "chat"
	OperationEmbed  = "embeddings"
	OperationSearch = "retrieval"
	ErrorOfTool     = "tool_error" // a result with isError
	ErrorOfModel    = "model_error"
	ErrorOther      = "_OTHER"
	TransportTCP    = "tcp"
	TransportPipe   = "pipe"
	TokenInput      = "input"
	TokenOutput     = "output"
)

// Attributes of the router itself.
const (
	Server      = attribute.Key("nexus.server") // as configured
	Caller      = attribute.Key("nexus.caller") // "key:NAME" or "addr:ADDRESS"
	Attempt     = attribute.Key("nexus.attempt")
	Attempts    = attribute.Key("nexus.attempts")
	Step        = attribute.Key("nexus.step")
	Round       = attribute.Key("nexus.round")
	QueryLength = attribute.Key("nexus.query.length") // characters
	PlanSource  = attribute.Key("nexus.plan.source")
	Steps       = attribute.Key("nexus.plan.steps")
	Failed      = attribute.Key("nexus.failed") // steps
	Outcome     = attribute.Key("nexus.outcome")
	Found       = attribute.Key("nexus.found")
)

// EventNotRun is the span event for a step that never reached its tool.
const EventNotRun = "step not run"
