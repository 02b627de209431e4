package meter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/ralph-pool/ralph/agents"
)

const (
	sse    = "text/event-stream; charset=utf-8"
	js     = "application/json"
	frames = "application/vnd.amazon.eventstream"
)

// fake is text of a model that looks like usage.
const fake = `{\"usage\":{\"input_tokens\":999999,\"output_tokens\":999999,\"prompt_tokens\":999999},\"usageMetadata\":{\"promptTokenCount\":999999}}`

// fakeData looks like usage in the data of a tool.
const fakeData = `{"usage":{"input_tokens":999999,"inputTokens":999999},"usageMetadata":{"promptTokenCount":999999},"model":"x"}`

const anthropicStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"usage":{"input_tokens":1200,"cache_creation_input_tokens":300,"cache_read_input_tokens":800,"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":` + fakeData + `}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + fake + `"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":1200,"cache_creation_input_tokens":300,"cache_read_input_tokens":800,"output_tokens":42}}

event: message_stop
data: {"type":"message_stop"}

`

const anthropicJSON = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"` + fake +
	`"},{"type":"tool_use","id":"t","name":"n","input":` + fakeData + `}],"stop_reason":"end_turn","stop_sequence":null,` +
	`"usage":{"input_tokens":1200,"output_tokens":42,"cache_creation_input_tokens":300,"cache_read_input_tokens":800}}`

const responsesUsage = `"usage":{"input_tokens":2000,"input_tokens_details":{"cached_tokens":800},"output_tokens":42,` +
	`"output_tokens_details":{"reasoning_tokens":7},"total_tokens":2042}`

const responsesStream = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-5.1-codex","output":[],"usage":null}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":1,"delta":"` + fake + `"}

event: response.%[1]s
data: {"type":"response.%[1]s","sequence_number":2,"response":{"id":"resp_1","object":"response","status":"%[1]s","model":"gpt-5.1-codex","output":[{"type":"message","content":[{"type":"output_text","text":"` + fake + `"}]},` + fakeData + `],` + responsesUsage + `}}

`

const chatUsage = `"usage":{"prompt_tokens":2000,"completion_tokens":42,"total_tokens":2042,"prompt_tokens_details":{"cached_tokens":800,"audio_tokens":0}}`

const chatStream = `data: {"id":"c","object":"chat.completion.chunk","model":"gpt-4.1-mini","choices":[{"index":0,"delta":{"content":"` + fake + `"},"finish_reason":null}],"usage":null}

data: {"id":"c","object":"chat.completion.chunk","model":"gpt-4.1-mini","choices":[],` + chatUsage + `}

data: [DONE]

`

// geminiAnswer returns one piece of a streamed answer. Its counts grow.
func geminiAnswer(candidates int) string {
	return fmt.Sprintf(`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"%s"},{"functionCall":{"args":%s}}]}}],`+
		`"usageMetadata":{"promptTokenCount":2000,"candidatesTokenCount":%d,"thoughtsTokenCount":10,"toolUsePromptTokenCount":5,`+
		`"totalTokenCount":2000,"cachedContentTokenCount":800},"modelVersion":"gemini-2.5-pro"}`, fake, fakeData, candidates)
}

const converseUsage = `"usage":{"inputTokens":1200,"outputTokens":42,"totalTokens":2342,"cacheReadInputTokens":800,"cacheWriteInputTokens":300}`

// bedrockFrames returns an event stream with the payloads.
func bedrockFrames(tb testing.TB, payloads ...string) string {
	tb.Helper()
	var out bytes.Buffer
	for _, payload := range payloads {
		err := eventstream.NewEncoder().Encode(&out, eventstream.Message{
			Headers: eventstream.Headers{
				{Name: ":message-type", Value: eventstream.StringValue("event")},
				{Name: ":event-type", Value: eventstream.StringValue("chunk")},
			},
			Payload: []byte(payload),
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return out.String()
}

// bedrockChunks returns a model's events in the format of InvokeModel.
func bedrockChunks(tb testing.TB, stream string) string {
	tb.Helper()
	var payloads []string
	for line := range strings.Lines(stream) {
		if event, ok := strings.CutPrefix(line, "data: "); ok {
			payload, err := json.Marshal(map[string]string{"bytes": base64.StdEncoding.EncodeToString([]byte(event)), "p": "abcdef"})
			if err != nil {
				tb.Fatal(err)
			}
			payloads = append(payloads, string(payload))
		}
	}
	return bedrockFrames(tb, payloads...)
}

type example struct {
	name, kind, path, body string
	want                   agents.Usage
	model                  string
}

func examples(tb testing.TB) []example {
	anthropic := agents.Usage{Input: 1200, Output: 42, CacheRead: 800, CacheWrite: 300}
	openai := agents.Usage{Input: 1200, Output: 42, CacheRead: 800}
	google := agents.Usage{Input: 1205, Output: 52, CacheRead: 800}
	const bedrockPath = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/"
	return []example{
		{"anthropic stream", sse, "/v1/messages", anthropicStream, anthropic, "claude-sonnet-4-5-20250929"},
		{"anthropic stream with CRLF", sse, "/v1/messages", strings.ReplaceAll(anthropicStream, "\n", "\r\n"), anthropic, "claude-sonnet-4-5-20250929"},
		{"anthropic stream without a type", "", "/v1/messages", anthropicStream, anthropic, "claude-sonnet-4-5-20250929"},
		{"anthropic", js, "/v1/messages", anthropicJSON, anthropic, "claude-opus-4-6"},
		{"anthropic, indented", js, "/v1/messages", indent(tb, anthropicJSON), anthropic, "claude-opus-4-6"},
		{"anthropic, as a stream", sse, "/v1/messages", anthropicJSON, anthropic, "claude-opus-4-6"},
		{
			"anthropic with a summary, which the counts leave out", sse, "/v1/messages",
			strings.ReplaceAll(anthropicStream, `"output_tokens":42}`, `"output_tokens":42,"iterations":[{"type":"compaction","input_tokens":500000,"output_tokens":100000},`+
				`{"type":"message","input_tokens":1200,"cache_creation_input_tokens":300,"cache_read_input_tokens":800,"output_tokens":42},{"input_tokens":-5},7]}`),
			agents.Usage{Input: 501200, Output: 100042, CacheRead: 800, CacheWrite: 300}, "claude-sonnet-4-5-20250929",
		},
		{
			"anthropic with one iteration", js, "/v1/messages",
			strings.ReplaceAll(anthropicJSON, `"output_tokens":42,`, `"output_tokens":42,"iterations":[{"type":"message","input_tokens":1200,"output_tokens":42}],`),
			anthropic, "claude-opus-4-6",
		},
		{"responses stream", sse, "/v1/responses", fmt.Sprintf(responsesStream, "completed"), openai, "gpt-5.1-codex"},
		{"incomplete responses stream", sse, "/v1/responses", fmt.Sprintf(responsesStream, "incomplete"), openai, "gpt-5.1-codex"},
		{"failed responses stream", sse, "/v1/responses", fmt.Sprintf(responsesStream, "failed"), openai, "gpt-5.1-codex"},
		{
			"responses", js, "/v1/responses",
			`{"id":"r","model":"gpt-5.1-codex","output":[{"type":"message","content":[{"type":"output_text","text":"` + fake + `"}]}],` + responsesUsage + `,"metadata":{}}`,
			openai, "gpt-5.1-codex",
		},
		{
			"responses with a cache write", js, "/v1/responses",
			`{"model":"gpt-6-sol","usage":{"input_tokens":2000,"input_tokens_details":{"cached_tokens":800,"cache_write_tokens":200},"output_tokens":42}}`,
			agents.Usage{Input: 1000, Output: 42, CacheRead: 800, CacheWrite: 200}, "gpt-6-sol",
		},
		{"chat stream", sse, "/v1/chat/completions", chatStream, openai, "gpt-4.1-mini"},
		{
			"chat", js, "/v1/chat/completions",
			`{"id":"c","object":"chat.completion","model":"gpt-4.1-mini","choices":[{"message":{"content":"` + fake + `"}}],` + chatUsage + `}`,
			openai, "gpt-4.1-mini",
		},
		{"gemini", js, "/v1beta/models/gemini-2.5-pro:generateContent", geminiAnswer(42), google, "gemini-2.5-pro"},
		{
			"gemini stream", sse, "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
			"data: " + geminiAnswer(7) + "\r\n\r\ndata: " + geminiAnswer(42) + "\r\n\r\n", google, "gemini-2.5-pro",
		},
		{
			"gemini array stream", js, "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
			"[" + indent(tb, geminiAnswer(7)) + "\n,\r\n" + geminiAnswer(42) + "\n]\n", google, "gemini-2.5-pro",
		},
		{
			"gemini by way of code assist", sse, "/v1internal:streamGenerateContent",
			`data: {"response":` + geminiAnswer(42) + `,"traceId":"t"}` + "\n\n", google, "gemini-2.5-pro",
		},
		{"bedrock stream", frames, bedrockPath + "invoke-with-response-stream", bedrockChunks(tb, anthropicStream), anthropic, "claude-sonnet-4-5-20250929"},
		{"bedrock", js, bedrockPath + "invoke", anthropicJSON, anthropic, "claude-opus-4-6"},
		{
			"converse", js, bedrockPath + "converse",
			`{"metrics":{"latencyMs":1},"output":{"message":{"role":"assistant","content":[{"text":"` + fake + `"},{"toolUse":{"input":` + fakeData + `}}]}},` + converseUsage + `}`,
			anthropic, "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
		},
		{
			"converse stream", frames, bedrockPath + "converse-stream",
			bedrockFrames(tb, `{"contentBlockIndex":0,"delta":{"text":"`+fake+`"},"p":"abc"}`, `{"metrics":{"latencyMs":1},`+converseUsage+`}`),
			anthropic, "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
		},
		{
			"vertex stream", sse, "/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
			anthropicStream, anthropic, "claude-sonnet-4-5-20250929",
		},
		{
			"vertex", js, "/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-6:rawPredict",
			strings.Replace(anthropicJSON, `"model":"claude-opus-4-6",`, "", 1), anthropic, "claude-opus-4-6",
		},
	}
}

func indent(tb testing.TB, text string) string {
	tb.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), "", "  "); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}
