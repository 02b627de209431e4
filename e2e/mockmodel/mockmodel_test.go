package mockmodel_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/e2e/mockmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

// serve starts a server for the test and returns its base URL.
func serve(t *testing.T, o mockmodel.Options) (*mockmodel.Server, string) {
	t.Helper()
	s := mockmodel.New(o)
	url, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, url
}

// post sends a request and returns the status and the whole body.
func post(t *testing.T, url string, body object) (status int, header http.Header, answer string, err error) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(url, "application/json", strings.NewReader(string(b)))
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(all), err
}

// format builds requests to one API and reads its responses.
type format struct {
	path   string
	body   func(stream bool, prompt string, results int) object
	answer func(t *testing.T, body string) (text string, commands []string)
	events func(t *testing.T, body string) (text string, commands []string)
}

func formats() map[string]format {
	return map[string]format{
		"messages": {
			path: "/v1/messages",
			body: func(stream bool, prompt string, results int) object {
				ms := []any{
					object{"role": "user", "content": "an earlier turn"},
					object{"role": "assistant", "content": "yes"},
					object{"role": "user", "content": []any{object{"type": "text", "text": prompt}}},
				}
				for i := range results {
					a, b := fmt.Sprintf("toolu_%d_0", i), fmt.Sprintf("toolu_%d_1", i) // two calls in one message
					ms = append(ms, object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": a}, object{"type": "tool_use", "id": b}}})
					ms = append(ms, object{"role": "user", "content": []any{
						object{"type": "tool_result", "tool_use_id": a}, object{"type": "tool_result", "tool_use_id": b},
					}})
				}
				schema := object{
					"properties": object{"command": object{"type": "string"}, "description": object{"type": "string"}, "timeout": object{"type": "number"}},
					"required":   []any{"command", "description"},
				}
				return object{"model": "m", "stream": stream, "messages": ms, "tools": []any{object{"name": "Read"}, object{"name": "Bash", "input_schema": schema}}}
			},
			answer: func(t *testing.T, body string) (text string, commands []string) {
				var m struct {
					Content []struct {
						Type, Text string
						Input      struct{ Command, Description string }
					}
				}
				decode(t, body, &m)
				for _, b := range m.Content {
					text += b.Text
					if b.Type == "tool_use" {
						commands = append(commands, b.Input.Command)
					}
				}
				return text, commands
			},
			events: func(t *testing.T, body string) (text string, commands []string) {
				var input string
				for _, e := range events(t, body) {
					switch e["type"] {
					case "content_block_delta":
						d := e["delta"].(object)
						if s, ok := d["text"].(string); ok {
							text += s
						}
						if s, ok := d["partial_json"].(string); ok {
							input += s
						}
					case "content_block_stop":
						if input != "" {
							var in struct{ Command string }
							decode(t, input, &in)
							commands, input = append(commands, in.Command), ""
						}
					}
				}
				return text, commands
			},
		},
		"responses": {
			path: "/v1/responses",
			body: func(stream bool, prompt string, results int) object {
				in := []any{object{"type": "message", "role": "user", "content": []any{object{"type": "input_text", "text": prompt}}}}
				for i := range results {
					a, b := fmt.Sprintf("call_%d_0", i), fmt.Sprintf("call_%d_1", i) // two calls in one message
					in = append(in, object{"type": "function_call", "call_id": a}, object{"type": "function_call", "call_id": b})
					in = append(in, object{"type": "function_call_output", "call_id": a}, object{"type": "function_call_output", "call_id": b})
				}
				tool := object{"type": "function", "name": "shell", "parameters": object{"properties": object{"command": object{"type": "array"}}}}
				return object{"model": "m", "stream": stream, "input": in, "tools": []any{object{"type": "namespace", "tools": []any{tool}}}}
			},
			answer: func(t *testing.T, body string) (text string, commands []string) {
				var r struct{ Output []object }
				decode(t, body, &r)
				return outputItems(t, r.Output)
			},
			events: func(t *testing.T, body string) (text string, commands []string) {
				all := events(t, body)
				if len(all) == 0 {
					return "", nil
				}
				last := all[len(all)-1]
				if last["type"] != "response.completed" {
					return "", nil
				}
				var r struct{ Response struct{ Output []object } }
				b, _ := json.Marshal(last)
				decode(t, string(b), &r)
				return outputItems(t, r.Response.Output)
			},
		},
	}
}

func outputItems(t *testing.T, items []object) (text string, commands []string) {
	for _, it := range items {
		switch it["type"] {
		case "message":
			text += it["content"].([]any)[0].(object)["text"].(string)
		case "function_call":
			var in struct{ Command []string }
			decode(t, it["arguments"].(string), &in)
			commands = append(commands, in.Command[len(in.Command)-1])
		}
	}
	return text, commands
}

func decode(t *testing.T, s string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), v); err != nil {
		t.Fatalf("decode %.200q: %v", s, err)
	}
}

// events reads server-sent events and checks that each one's name equals its type.
func events(t *testing.T, body string) []object {
	t.Helper()
	var all []object
	var name string
	sc := bufio.NewScanner(strings.NewReader(body))
	sc.Buffer(nil, 8<<20)
	for sc.Scan() {
		if n, ok := strings.CutPrefix(sc.Text(), "event: "); ok {
			name = n
		}
		if d, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			var e object
			decode(t, d, &e)
			if e["type"] != name {
				t.Fatalf("event %q has type %q", name, e["type"])
			}
			all = append(all, e)
		}
	}
	return all
}

// Every scenario has the same text and commands at every step on both APIs, with and without streaming.
func TestScenariosOnBothAPIs(t *testing.T) {
	t.Parallel()
	_, url := serve(t, mockmodel.Options{})
	for api, f := range formats() {
		for name, s := range mockmodel.Builtin() {
			if s.Fault != nil || name == "hang" || name == "truncate" {
				continue
			}
			t.Run(api+"/"+name, func(t *testing.T) {
				t.Parallel()
				for step := range len(s.Steps) {
					target := url + "/s/" + name + f.path
					_, _, whole, err := post(t, target, f.body(false, "Work on issue fix-it now.", step))
					if err != nil {
						t.Fatal(err)
					}
					_, _, streamed, err := post(t, target, f.body(true, "Work on issue fix-it now.", step))
					if err != nil {
						t.Fatal(err)
					}
					text, commands := f.answer(t, whole)
					text2, commands2 := f.events(t, streamed)
					if text != text2 || !slices.Equal(commands, commands2) {
						t.Fatalf("step %d: whole %.80q %q, streamed %.80q %q", step, text, commands, text2, commands2)
					}
					if len(commands) != len(s.Steps[step].Calls) {
						t.Fatalf("step %d: commands %q", step, commands)
					}
					if strings.Contains(text+strings.Join(commands, ""), "{{prompt") {
						t.Fatalf("step %d: a placeholder is left: %.200q %q", step, text, commands)
					}
				}
			})
		}
	}
}

func TestPromptDecides(t *testing.T) {
	t.Parallel()
	s, url := serve(t, mockmodel.Options{Scenario: "forgetful"})
	f := formats()["messages"]
	ask := func(prompt string) string {
		_, _, body, err := post(t, url+f.path, f.body(true, prompt, 0))
		if err != nil {
			t.Fatal(err)
		}
		_, commands := f.events(t, body)
		return strings.Join(commands, "\n")
	}
	if got := ask("Issue: it's-42. Feedback: "); !strings.HasPrefix(got, "k='it';") {
		t.Errorf("the key is not taken from the prompt: %q", got)
	}
	if got := ask("Issue: 42\nFeedback: the gate failed"); !strings.Contains(got, "git commit") {
		t.Errorf("feedback changes nothing: %q", got)
	}
	rs := s.Requests()
	if len(rs) != 2 || rs[1].Prompt != "Issue: 42\nFeedback: the gate failed" || rs[1].Scenario != "forgetful" || rs[1].Step != 0 {
		t.Errorf("requests: %+v", rs)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for api, f := range formats() {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			_, url := serve(t, mockmodel.Options{})
			statuses := func(name string, steps ...int) (got []int) {
				for _, step := range steps {
					status, _, _, err := post(t, url+"/s/"+name+f.path, f.body(true, "p", step))
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, status)
				}
				return got
			}
			for name, want := range map[string][]int{
				"overload": {529, 529, 529}, "flaky": {529, 200, 200}, "late": {200, 529, 529}, "ratelimit": {429, 429, 429},
				"auth": {401, 401, 401}, "badrequest": {400, 400, 400}, "nomodel": {404, 404, 404}, "no-such": {400, 400, 400},
			} {
				if got := statuses(name, 0, 1, 2); !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
			}
			_, header, body, err := post(t, url+"/s/ratelimit"+f.path, f.body(false, "p", 0))
			if err != nil || header.Get("Retry-After") != "1" || !strings.Contains(body, `"rate_limit_error"`) {
				t.Errorf("rate limit: %v %q %v", header, body, err)
			}
		})
	}
}

func TestTruncatedStreamIsNotComplete(t *testing.T) {
	t.Parallel()
	for api, f := range formats() {
		_, url := serve(t, mockmodel.Options{Scenario: "truncate"})
		_, _, body, err := post(t, url+f.path, f.body(true, "p", 0))
		if err == nil || !strings.Contains(body, "partial") || strings.Contains(body, "message_stop") {
			t.Errorf("%s: %q, %v", api, body, err)
		}
	}
}

// A stalled response ends when the client disconnects, and when the server closes.
func TestHangEnds(t *testing.T) {
	t.Parallel()
	f := formats()["responses"]
	body, _ := json.Marshal(f.body(true, "p", 0))
	for _, way := range []string{"client goes", "server closes"} {
		s := mockmodel.New(mockmodel.Options{Scenario: "hang"})
		url, err := s.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+f.path, strings.NewReader(string(body)))
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(resp.Body)
		for line := ""; !strings.Contains(line, "partial"); {
			if line, err = r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := io.Copy(io.Discard, r); err == nil && way == "client goes" {
				t.Errorf("%s: the answer came to an end", way)
			}
		})
		if way == "client goes" {
			cancel(errors.New(way))
			wg.Wait()
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		cancel(nil)
		resp.Body.Close()
	}
}

func TestListenIsLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.invalid:0", "127.0.0.1"} {
		s := mockmodel.New(mockmodel.Options{})
		if url, err := s.Listen(addr); err == nil {
			t.Errorf("%s is served as %s", addr, url)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"good":          {`{"a": {"about": "x", "steps": [{"text": "t {{turn}} {{other}}"}]}}`, ""},
		"unknown field": {`{"a": {"stepz": []}}`, "stepz"},
		"no steps":      {`{"a": {"about": "x"}}`, `scenario "a": has no steps`},
		"no error":      {`{"a": {"fault": {"status": 200}}}`, "status 200"},
		"bad prompt":    {`{"a": {"steps": [{}], "when": [{"prompt": "(", "steps": [{}]}]}}`, "prompt:"},
		"bad variant":   {`{"a": {"steps": [{}], "when": [{"prompt": "x"}]}}`, "no steps"},
		"bad command":   {`{"a": {"steps": [{"calls": [{"command": "{{prompt:(}}"}]}]}}`, "placeholder"},
		"two values":    {`{} {}`, "after the end"},
	} {
		_, err := mockmodel.Parse(strings.NewReader(c.in))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for name, s := range mockmodel.Builtin() {
		if s.About == "" {
			t.Errorf("%s does not say what it is for", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"a": {"steps": [{"text": "{{prompt:x}}"}]}}`)
	f.Add(`{"a": {"fault": {"status": 500}}}`)
	f.Fuzz(func(t *testing.T, in string) {
		if _, err := mockmodel.Parse(strings.NewReader(in)); err == nil && !json.Valid([]byte(in)) {
			t.Errorf("%q is no JSON and was taken", in)
		}
	})
}

// No request, however broken, breaks the server.
func FuzzRequest(f *testing.F) {
	for _, fm := range formats() {
		b, _ := json.Marshal(fm.body(true, "p", 1))
		f.Add(fm.path, b)
	}
	f.Add("/s/issue/v1/messages", []byte(`{"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":[3]}]}`))
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		if strings.Contains(path, "hang") || strings.Contains(path, "truncate") {
			return
		}
		s := mockmodel.New(mockmodel.Options{})
		defer s.Close()
		r, err := http.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
		if err != nil {
			t.Skip()
		}
		r.URL.Path = path
		s.ServeHTTP(discard{}, r)
	})
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
func (discard) Flush()                      {}
