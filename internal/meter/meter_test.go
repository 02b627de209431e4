package meter

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

// measure writes a body in pieces.
func measure(tb testing.TB, kind, path string, pieces ...string) *Answer {
	tb.Helper()
	a := New(kind, path)
	for _, piece := range pieces {
		if n, err := a.Write([]byte(piece)); n != len(piece) || err != nil {
			tb.Fatalf("Write returned %d, %v for %d bytes", n, err, len(piece))
		}
	}
	return a
}

func check(t *testing.T, a *Answer, want agents.Usage, model string) {
	t.Helper()
	if u, m, seen := a.Usage(); u != want || m != model || !seen {
		t.Fatalf("usage is %+v of %q, seen %t; want %+v of %q", u, m, seen, want, model)
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, tt := range examples(t) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check(t, measure(t, tt.kind, tt.path, tt.body), tt.want, tt.model)
			check(t, measure(t, tt.kind, tt.path, strings.Split(tt.body, "")...), tt.want, tt.model)
			for cut := range len(tt.body) {
				a := measure(t, tt.kind, tt.path, tt.body[:cut])
				if u, _, _ := a.Usage(); u.Input > tt.want.Input || u.Output > tt.want.Output || u.CacheRead > tt.want.CacheRead {
					t.Fatalf("after %d bytes: usage is %+v", cut, u)
				}
				_, _ = a.Write([]byte(tt.body[cut:]))
				check(t, a, tt.want, tt.model)
				if a.skipped {
					t.Fatal("a part was skipped")
				}
			}
		})
	}
}

func TestCutOff(t *testing.T) {
	t.Parallel()
	const path = "/v1/messages"
	begin := agents.Usage{Input: 1200, Output: 1, CacheRead: 800, CacheWrite: 300}
	cut := strings.Index(anthropicStream, "event: message_delta")
	check(t, measure(t, sse, path, anthropicStream[:cut]), begin, "claude-sonnet-4-5-20250929")

	frames0 := bedrockChunks(t, anthropicStream[:cut])
	check(t, measure(t, frames, path, frames0+"\x00\x00\x01\x00part of a frame"), begin, "claude-sonnet-4-5-20250929")

	google := agents.Usage{Input: 1205, Output: 17, CacheRead: 800}
	check(t, measure(t, js, path, "["+geminiAnswer(7)+`,{"usageMetadata":{"promptTokenCount":9`), google, "gemini-2.5-pro")

	member := `{"model":"gpt-5.1",` + responsesUsage
	check(t, measure(t, js, path, member), agents.Usage{Input: 1200, Output: 42, CacheRead: 800}, "gpt-5.1")
	if _, _, seen := measure(t, js, path, member[:len(member)-1]).Usage(); seen {
		t.Error("half a usage was read")
	}
	if _, _, seen := measure(t, sse, path, "data: {"+responsesUsage+"}").Usage(); seen {
		t.Error("a line without its end was read")
	}
}

func TestHostile(t *testing.T) {
	t.Parallel()
	const capped = 1 << 40
	tests := []struct {
		name, body string
		want       agents.Usage
		seen       bool
	}{
		{"empty", "", agents.Usage{}, false},
		{"white space", " \r\n\t", agents.Usage{}, false},
		{"no usage", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`, agents.Usage{}, false},
		{"null", `{"usage":null,"usageMetadata":null,"message":null,"response":null}`, agents.Usage{}, false},
		{"other types", `{"usage":[1],"usageMetadata":"x","message":"text","response":7,"model":{}}`, agents.Usage{}, false},
		{"empty usage", `{"usage":{}}`, agents.Usage{}, false},
		{"zero", `{"usage":{"input_tokens":0,"output_tokens":0}}`, agents.Usage{}, true},
		{"strings", `{"usage":{"input_tokens":"12","output_tokens":[3]}}`, agents.Usage{}, false},
		{"negative", `{"usage":{"input_tokens":-5,"output_tokens":-1e300}}`, agents.Usage{}, false},
		{"fractions", `{"usage":{"input_tokens":1.2,"output_tokens":5.0}}`, agents.Usage{Input: 2, Output: 5}, true},
		{"huge", `{"usage":{"input_tokens":1e999,"output_tokens":99999999999999999999}}`, agents.Usage{Input: capped, Output: capped}, true},
		{"a good and a bad one", `{"usage":{"input_tokens":7,"output_tokens":{"a":1}}}`, agents.Usage{Input: 7}, true},
		{"more cached than read", `{"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":90}}}`, agents.Usage{CacheRead: 90}, true},
		{"repeated keys", `{"usage":{"input_tokens":70,"input_tokens":7},"usage":{"input_tokens":9,"output_tokens":3}}`, agents.Usage{Input: 70, Output: 3}, true},
		{
			"repeated events", "data: {\"usage\":{\"input_tokens\":7,\"output_tokens\":9}}\n\ndata: {\"usage\":{\"input_tokens\":8,\"output_tokens\":2}}\n\n",
			agents.Usage{Input: 8, Output: 9}, true,
		},
		{"quotes and brackets in a text", `{"content":"a \" { [ \\","usage":{"input_tokens":4}}`, agents.Usage{Input: 4}, true},
		{"two shapes", `{"usage":{"input_tokens":7,"prompt_tokens":9}}`, agents.Usage{Input: 9}, true},
		{"deeper", `{"choices":[{"usage":{"prompt_tokens":9}}],"content":{"usage":{"input_tokens":9}},"message":{"content":{"usage":{"input_tokens":9}}}}`, agents.Usage{}, false},
		{"twice as deep", `{"response":{"response":{"usage":{"input_tokens":9}}}}`, agents.Usage{}, false},
		{"many documents", "{\"usage\":{\"input_tokens\":1}}\n{\"usage\":{\"input_tokens\":4}}\n", agents.Usage{Input: 4}, true},
		{"after brackets that are not open", `{}]}}{"usage":{"input_tokens":4}}`, agents.Usage{Input: 4}, true},
		{"after a malformed event", "data: {\"usage\":{\n\ndata: {\"usage\":{\"input_tokens\":4}}\n\n", agents.Usage{Input: 4}, true},
		{"an event in three lines", "data: {\"usage\":\ndata: {\"input_tokens\":4}\ndata: }\n\n", agents.Usage{Input: 4}, true},
		{"other fields of an event", ": usage\nid: 1\nretry: 5\ndata:{\"usage\":{\"input_tokens\":4}}\n\n", agents.Usage{Input: 4}, true},
		{"deep nesting", `{"usage":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `,"usage":{"input_tokens":4}}`, agents.Usage{Input: 4}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, half := range []int{0, len(tt.body) / 2} {
				u, model, seen := measure(t, "", "/v1/messages", tt.body[:half], tt.body[half:]).Usage()
				if u != tt.want || seen != tt.seen || model != "" {
					t.Errorf("usage is %+v of %q, seen %t; want %+v, %t", u, model, seen, tt.want, tt.seen)
				}
			}
		})
	}
}

// Overlong parts are skipped, and the following parts are read.
func TestTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxPart+1)
	const rest = `"usage":{"input_tokens":4}}`
	tests := []struct{ name, kind, body string }{
		{"event", sse, `data: {"text":"` + long + `","usage":{"input_tokens":9}}` + "\n\ndata: {" + rest + "\n\n"},
		{"event in two lines", sse, "data: {\ndata: \"text\":\"" + long[:maxPart-100] + "\"\ndata: " + long[:200] + "\n\ndata: {" + rest + "\n\n"},
		{"comment", sse, ": " + long + "\ndata: {" + rest + "\n\n"},
		{"member", js, `{"content":["` + long + `"],` + rest},
		{"element", js, `["` + long + `",{` + rest + `]`},
		{"frame", frames, bedrockFrames(t, "{"+rest) + "\x00\xA0\x00\x00" + strings.Repeat("x", 0xA00000-4) + bedrockFrames(t, "{"+rest)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := New(tt.kind, "")
			most := 0
			for at := 0; at < len(tt.body); at += 32 << 10 {
				_, _ = a.Write([]byte(tt.body[at:min(at+32<<10, len(tt.body))]))
				most = max(most, cap(a.part.bytes)+cap(a.data.bytes))
			}
			check(t, a, agents.Usage{Input: 4}, "")
			check(t, measure(t, tt.kind, "", tt.body), agents.Usage{Input: 4}, "")
			if !a.skipped {
				t.Error("nothing was skipped")
			}
			if most > 4*maxPart {
				t.Errorf("%d bytes were kept", most)
			}
		})
	}
}

func TestBrokenFrames(t *testing.T) {
	t.Parallel()
	good := bedrockFrames(t, `{"usage":{"inputTokens":4}}`)
	after := bedrockFrames(t, `{"usage":{"inputTokens":9}}`)
	damaged := []byte(after)
	damaged[len(damaged)-6] ^= 1
	tests := []struct {
		name, body string
		want       int64
	}{
		{"damaged", good + string(damaged), 4},
		{"after a damaged one", string(damaged) + good, 4},
		{"too short", good + "\x00\x00\x00\x0f" + after, 4},
		{"empty", good + "\x00\x00\x00\x00" + after, 4},
		{"far too long", good + "\xff\x00\x00\x03" + after, 4},
		{"no frames", `{"usage":{"inputTokens":9}}`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := measure(t, frames, "", strings.Split(tt.body, "")...)
			if u, _, _ := a.Usage(); u.Input != tt.want || !a.skipped {
				t.Errorf("input is %d, skipped %t; want %d", u.Input, a.skipped, tt.want)
			}
		})
	}
}

func TestModelOf(t *testing.T) {
	t.Parallel()
	tests := []struct{ path, want string }{
		{"/v1/messages", ""},
		{"/v1/models", ""},
		{"/v1/models/gpt-5", ""},
		{"/model/", ""},
		{"/model/anthropic.claude-3-haiku-20240307-v1:0/invoke", "anthropic.claude-3-haiku-20240307-v1:0"},
		{"/model/arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-6-v1/converse", "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-6-v1"},
		{"/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro"},
		{"/model/a\nb/invoke", ""},
		{"/model/" + strings.Repeat("x", 300) + "/invoke", ""},
	}
	for _, tt := range tests {
		if got := modelOf(tt.path); got != tt.want {
			t.Errorf("model of %q is %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestModelIsPrintable(t *testing.T) {
	t.Parallel()
	for _, model := range []string{`"\u001b[2J"`, `"a b"`, `"ä"`, `""`, `7`, `"` + strings.Repeat("x", 300) + `"`} {
		a := measure(t, js, "/model/m/invoke", `{"model":`+model+`,"usage":{"input_tokens":4}}`)
		check(t, a, agents.Usage{Input: 4}, "m")
	}
}

func TestFirstModelCounts(t *testing.T) {
	t.Parallel()
	check(t, measure(t, js, "/model/m/invoke", `{"model":"a","usage":{"input_tokens":4},"model":"b"}`), agents.Usage{Input: 4}, "a")
}

// The result does not depend on the cuts between writes, and no count is negative.
func FuzzAnswer(f *testing.F) {
	for _, tt := range examples(f) {
		f.Add(tt.kind, []byte(tt.body), uint(len(tt.body)/3), uint(7))
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte, first, second uint) {
		if len(body) == 0 {
			return
		}
		whole := New(kind, "")
		_, _ = whole.Write(bytes.Clone(body))
		want, model, seen := whole.Usage()
		if min(want.Input, want.Output, want.CacheRead, want.CacheWrite) < 0 || want.CostUSD != 0 {
			t.Fatalf("usage is %+v", want)
		}
		if !seen && want != (agents.Usage{}) {
			t.Fatalf("not seen: %+v", want)
		}
		i := int(first % uint(len(body)))
		j := i + int(second%uint(len(body)-i))
		a := New(kind, "")
		for _, piece := range [][]byte{body[:i], body[i:j], body[j:]} {
			buffer := bytes.Clone(piece)
			_, _ = a.Write(buffer)
			clear(buffer) // a writer must not keep the buffer
		}
		if u, m, s := a.Usage(); u != want || m != model || s != seen || a.skipped != whole.skipped {
			t.Fatalf("cut at %d and %d: %+v of %q, seen %t; whole: %+v of %q, %t", i, j, u, m, s, want, model, seen)
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	for _, tt := range examples(b) {
		switch tt.name {
		case "anthropic stream", "responses stream", "chat stream", "gemini stream", "anthropic", "bedrock stream":
		default:
			continue
		}
		body := []byte(tt.body)
		if tt.kind == sse {
			// Mostly text deltas, like real streams.
			delta, _, _ := strings.Cut(tt.body, "\n")
			if !strings.HasPrefix(tt.name, "chat") && !strings.HasPrefix(tt.name, "gemini") {
				delta = `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + fake + `"}}`
			}
			delta = strings.NewReplacer(fake, "some words of it", fakeData, "{}").Replace(delta) + "\n\n"
			body = append(bytes.Repeat([]byte(delta), (1<<20)/len(delta)), body...)
		}
		b.Run(tt.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				a := New(tt.kind, tt.path)
				for at := 0; at < len(body); at += 4096 {
					_, _ = a.Write(body[at:min(at+4096, len(body))])
				}
				if _, _, seen := a.Usage(); !seen {
					b.Fatal("no usage")
				}
			}
		})
	}
}

func TestFree(t *testing.T) {
	t.Parallel()
	if !Free("/v1/messages/count_tokens") || !Free("/v1/models/m:countTokens") || Free("/v1/messages") {
		t.Error("free requests")
	}
}
