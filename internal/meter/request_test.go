package meter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

// A request may cost its size and the longest answer that it allows. What it says twice, or not at all, does not make it cheaper.
func TestAsked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path, body string
		output     int64
		model      string
	}{
		{"/v1/messages", `{"model":"claude-haiku-4-5","max_tokens":32000,"messages":[{"max_tokens":1}]}`, 32000, "claude-haiku-4-5"},
		{"/v1/messages", `{"max_tokens":1,"Max_Tokens":900,"model":"a","model":"b"}`, 900, "b"},
		{"/v1/messages", `{"max_tokens":1e15}`, maxOutput, ""},
		{"/v1/messages", `{"max_tokens":0,"model":7}`, maxOutput, ""},
		{"/v1/messages", `{"max_tokens":"9"}`, maxOutput, ""},
		{"/v1/messages", ``, maxOutput, ""},
		{"/responses", `{"model":"gpt-5","max_output_tokens":500,"max_tokens":1}`, 500, "gpt-5"},
		{"/responses", `{"max_tokens":1}`, maxOutput, ""},
		{"/v1/chat/completions", `{"max_tokens":1,"max_completion_tokens":20,"n":3}`, 60, ""},
		{"/v1beta/models/gemini-3-pro:generateContent", `{"generationConfig":{"maxOutputTokens":8}}`, 8, "gemini-3-pro"},
		{"/v1beta/models/gemini-3-pro:generateContent", `{"generation_config":{"max_output_tokens":8,"candidateCount":2}}`, 16, "gemini-3-pro"},
		{"/responses/compact", `{"max_output_tokens":1,"max_tokens":1}`, maxOutput, ""},
		{"/v1/completions", `{"max_tokens":10,"n":2,"best_of":5}`, 50, ""},
		{"/model/anthropic.claude-v1/converse", `{"inferenceConfig":{"maxTokens":7}}`, 7, "anthropic.claude-v1"},
	} {
		asked := Asked([]byte(tt.body), tt.path)
		got, model := asked.Most, asked.Model()
		if want := (agents.Usage{Input: int64(len(tt.body)) / denseToken, Output: tt.output}); got != want || model != tt.model {
			t.Errorf("%s %s: %+v of %q, want %+v of %q", tt.path, tt.body, got, model, want, tt.model)
		}
	}
}

// Images and files may have many more tokens than their size says, however the request spells their types.
func TestAskedMedia(t *testing.T) {
	t.Parallel()
	const long = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for body, want := range map[string]int64{
		`{"messages":[{"content":[{"type":"image","source":{"media_type":"image/png","data":"` + long + `"}},{"source":{"media_type":"IMAGE/JPEG"}}]}]}`: 2 * imageTokens,
		`{"input":[{"content":[{"image_url":"data:image/png;base64,` + long + `"}]}]}`:                                                                   imageTokens,
		`{"input":[{"content":[{"image_url":"\u0064ata:image\/png;base64,` + long + `\n"}]}]}`:                                                           imageTokens,
		`{"messages":[{"content":"an image/png \" \\\" image/png data:image/png application/pdf"}],"image":"file"}`:                                      0,
		`{"messages":[{"content":[{"source":{"media_type":"application\/pdf","data":"x"}}]}]}`:                                                           maxInput,
		`{"messages":[{"content":[{"type":"tool_use","input":{"pattern":"application/pdf","query":"file_data"}}]}]}`:                                     0,
		`{"contents":[{"inlineData":{"mimeType" : "application/pdf"}}]}`:                                                                                 maxInput,
		`{"input":[{"type":"input_file","File_Data":"x"}]}`:                                                                                              maxInput,
		`{"input":"` + strings.Repeat(`","image/png`, 1000) + `"}`:                                                                                       maxInput,
	} {
		if got, size := Asked([]byte(body), "/v1/messages").Most.Input, int64(len(body))/denseToken; got != min(size+want, maxInput) {
			t.Errorf("%s: %d, want %d and %d", body, got, size, want)
		}
	}
	large := `{"input":"` + strings.Repeat("x", 3*maxInput) + `"}`
	if got := Asked([]byte(large), "/responses").Most.Input; got != int64(len(large))/denseToken {
		t.Errorf("a large request: %d", got)
	}
}

// A request that lets the service summarize the conversation first may use the input twice, and the longest output once more.
func TestAskedToCompact(t *testing.T) {
	t.Parallel()
	for body, compacts := range map[string]bool{
		`{"max_tokens":9,"context_management":{"edits":[{"type":"clear_thinking_20251015"},{"type":"compact_20260112"}]}}`: true,
		`{"max_tokens":9,"Context_Management":{"Edits":[{"Type":"COMPACT_20990101","type":7}]}}`:                           true,
		`{"max_tokens":9,"contextManagement":[{"type":"compaction","compact_threshold":1000}]}`:                            true,
		`{"max_tokens":9,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}}`:                            false,
		`{"max_tokens":9,"context_management":null,"compaction":null}`:                                                     false,
		`{"max_tokens":9,"compaction":{"type":"summarize"}}`:                                                               true,
		`{"max_tokens":9,"messages":[{"content":"context_management: compact","compaction":{}}]}`:                          false,
	} {
		want := agents.Usage{Input: int64(len(body)) / denseToken, Output: 9}
		if compacts {
			want.Input, want.Output = 2*want.Input, want.Output+maxOutput
		}
		if got := Asked([]byte(body), "/v1/messages").Most; got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

// A request may cost what the tier that it names costs, in the words of each service. What it says twice counts twice.
func TestAskedTiers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"model":"gpt-5"}`:       nil,
		`{"service_tier":"auto"}`: {"standard"},
		`{"service_tier":"priority","input":[{"service_tier":"flex"}]}`: {"priority"},
		`{"Service_Tier":"priority","service_tier":"default"}`:          {"priority", "standard"},
		`{"serviceTier":{"type":"priority"}}`:                           {"priority"},
		`{"speed":"fast"}`:                                              {"fast"},
		`{"service_tier":7,"speed":null}`:                               nil,
		`{"service_tier":"standard_only"}`:                              {"standard"},
	} {
		if got := slices.Sorted(maps.Keys(Asked([]byte(body), "/responses").Tiers)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// A request may cost what the region that it names costs.
func TestAskedRegions(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"inference_geo":"us","Inference_Geo":"EU"}`:                         {"eu", "us"},
		`{"inferenceGeo":"global"}`:                                           nil,
		`{"inference_geo":null,"messages":[{"inference_geo":"us"}]}`:          nil,
		`{"inference_geo":"not_available","metadata":{"inference_geo":"us"}}`: nil,
	} {
		if got := slices.Sorted(maps.Keys(Asked([]byte(body), "/v1/messages").Regions)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// A request names every model that a service may take for its model. The last is the main one.
func TestAskedModels(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{}`:                        nil,
		`{"model":"a","model":"b"}`: {"a", "b"},
		`{"Model":"a","model":"b"}`: {"a", "b"},
		`{"model":["a"]}`:           {""},
		`{"model":"a b"}`:           {""},
		`{"model":"a","models":["b","c"],"fallbacks":[{"model":"d"}]}`: {"d", "b", "c", "a"},
		`{"messages":[{"model":"a"}]}`:                                 nil,
	} {
		if got := Asked([]byte(body), "/v1/messages").Models; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// The output that an answer has not stated is what its request allowed. Only a service that has ended its answer, after it has
// begun to state its usage, has generated no more than arrived.
func TestUnstatedOutput(t *testing.T) {
	t.Parallel()
	asked := agents.Usage{Input: 1000, Output: 32000}
	start, _, _ := strings.Cut(anthropicStream, "event: content_block_start")
	almost, _, _ := strings.Cut(anthropicStream, "event: message_stop")
	silent := strings.Repeat("data: {}\n\n", 40)
	for _, tt := range []struct {
		name     string
		body     string
		complete bool
		want     agents.Usage
	}{
		{"whole", anthropicStream, true, agents.Usage{Input: 1200, Output: 42, CacheRead: 800, CacheWrite: 300}},
		{"cut after its usage", almost, false, agents.Usage{Input: 1200, Output: 42, CacheRead: 800, CacheWrite: 300}},
		{"cut at the start", start, false, agents.Usage{Input: 1200, Output: 32000, CacheRead: 800, CacheWrite: 300, Estimated: 32000}},
		{"ended by the service", start, true, agents.Usage{Input: 1200, Output: int64(len(start) / 4), CacheRead: 800, CacheWrite: 300, Estimated: int64(len(start) / 4)}},
		{"nothing stated", silent, true, agents.Usage{Input: 1000, Output: 32000, Estimated: 33000}},
		{"nobody waited", "", false, agents.Usage{Input: 1000, Output: 32000, Estimated: 33000}},
		{"longer than allowed", strings.Repeat(silent, 400), false, agents.Usage{Input: 1000, Output: 40000, Estimated: 41000}},
	} {
		a := New(sse, "/v1/messages")
		_, _ = fmt.Fprint(a, tt.body)
		if got, _ := a.Estimated(Request{Most: asked}, tt.complete); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	a := New(sse, "/v1/messages") // the beginning does not say what a summary has cost
	_, _ = fmt.Fprint(a, start)
	got, _ := a.Estimated(Request{Most: agents.Usage{Input: 5000, Output: 32000}, Compacts: true}, false)
	if want := (agents.Usage{Input: 1200 + 2700, Output: 32000, CacheRead: 800, CacheWrite: 300, Estimated: 32000 + 2700}); got != want {
		t.Errorf("with a summary: %+v, want %+v", got, want)
	}
}
