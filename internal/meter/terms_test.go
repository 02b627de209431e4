package meter

import (
	"io"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

// Terms are found wherever a service states them. Values that cannot be the name of a tier are ignored.
func TestTerms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, body string
		want       Terms
	}{
		"Anthropic's stream": {sse, anthropicStream, Terms{Tier: "standard"}},
		"Anthropic, an hour": {
			js, `{"usage":{"input_tokens":1,"cache_creation_input_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":7},"service_tier":"priority"}}`,
			Terms{HourWrites: 7, Tier: "priority"},
		},
		"Anthropic, an hour at the beginning of a stream": {
			sse, `data: {"type":"message_start","message":{"usage":{"input_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":7},"service_tier":"batch"}}}` +
				"\n\n" + `data: {"type":"message_delta","usage":{"output_tokens":3}}` + "\n\n",
			Terms{HourWrites: 7, Tier: "batch"},
		},
		"Anthropic, fast":     {js, `{"usage":{"input_tokens":1,"service_tier":"standard","speed":"fast"}}`, Terms{Tier: "fast"}},
		"Anthropic, a region": {js, `{"usage":{"input_tokens":1,"service_tier":"batch","inference_geo":"US"}}`, Terms{Tier: "batch", Region: "us"}},
		"Anthropic, a region at the beginning of a stream": {
			sse, `data: {"type":"message_start","message":{"usage":{"input_tokens":1,"inference_geo":"us"}}}` + "\n\n" + `data: {"usage":{"output_tokens":3}}` + "\n\n",
			Terms{Region: "us"},
		},
		"Anthropic, any region": {js, `{"usage":{"input_tokens":1,"inference_geo":"global"}}`, Terms{}},
		"Anthropic, no region":  {js, `{"usage":{"input_tokens":1,"inference_geo":"not_available"}}`, Terms{}},
		"Anthropic, no terms":   {js, `{"usage":{"input_tokens":1,"service_tier":null,"speed":null,"cache_creation":null}}`, Terms{}},
		"Anthropic, a summary for an hour": {
			js, `{"usage":{"input_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":7},"iterations":[{"type":"compaction","cache_creation":` +
				`{"ephemeral_1h_input_tokens":50}},{"type":"message","cache_creation":{"ephemeral_1h_input_tokens":7}}]}}`, Terms{HourWrites: 57},
		},
		"OpenAI's responses": {
			sse, `data: {"type":"response.completed","response":{"model":"m","service_tier":"flex","usage":{"input_tokens":3}}}` + "\n\n", Terms{Tier: "flex"},
		},
		"OpenAI's chat":         {js, `{"model":"m","usage":{"prompt_tokens":3},"service_tier":"priority"}`, Terms{Tier: "priority"}},
		"OpenAI, default":       {js, `{"model":"m","service_tier":"default","usage":{"prompt_tokens":3}}`, Terms{Tier: "standard"}},
		"Gemini":                {js, `{"usageMetadata":{"promptTokenCount":3,"serviceTier":"SERVICE_TIER_FLEX"}}`, Terms{Tier: "flex"}},
		"Vertex":                {js, `{"usageMetadata":{"promptTokenCount":3,"trafficType":"ON_DEMAND_PRIORITY"}}`, Terms{Tier: "priority"}},
		"Vertex, as usual":      {js, `{"usageMetadata":{"promptTokenCount":3,"trafficType":"ON_DEMAND"}}`, Terms{Tier: "standard"}},
		"Bedrock":               {js, `{"serviceTier":{"type":"flex"},"usage":{"inputTokens":1,"cacheWriteInputTokens":5,"cacheDetails":[{"ttl":"1h","inputTokens":4},{"ttl":"5m","inputTokens":1}]}}`, Terms{HourWrites: 4, Tier: "flex"}},
		"not a name":            {js, `{"usage":{"input_tokens":1,"service_tier":"a\u001bb"},"service_tier":[7]}`, Terms{}},
		"in a model's own data": {js, `{"content":[{"usage":{"service_tier":"batch"},"service_tier":"batch"}],"usage":{"input_tokens":1}}`, Terms{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := New(c.kind, "/v1/messages")
			_, _ = io.WriteString(a, c.body)
			if got := a.Terms(); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// A tier alone is not usage: the usage is still estimated.
func TestTermsAreNoUsage(t *testing.T) {
	t.Parallel()
	a := New(js, "/v1/messages")
	_, _ = io.WriteString(a, `{"service_tier":"flex","usage":{"service_tier":"flex","inference_geo":"us"}}`)
	if u, _, seen := a.Usage(); seen || u != (agents.Usage{}) {
		t.Errorf("used %+v, seen %t", u, seen)
	}
}
