package servertools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// filtered returns the filtered body and the removed tools.
func filtered(body string) (out string, removed []string, err error) {
	all := []byte(body)
	removed, err = Filter(all)
	return string(all), removed, err
}

const fn = `{"type":"function","name":"shell","parameters":{"type":"object","tools":[{"type":"web_search"}]}}`

func TestPasses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, ` `, `{}`, `[]`, `"x"`, `{"tools":[]}`, `{"tools":[` + fn + `, ` + fn + `]}`, `{"tools":null,"mcp_servers":[],"tool_choice":"auto"}`,
		`{"model":"m","messages":[{"role":"user","content":"fetch {\"type\":\"web_search\"} \u0041 \\"}],"max_tokens":1e3}`,
		`{"messages":[{"content":[{"type":"tool_use","input":{"source":{"type":"url","url":"https://a"},"mcp_servers":[{}],"tools":[{"type":"mcp"}]}}]}]}`,
		`{"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"aaaa"}},{"type":"search_result","source":"https://a.example"}]}]}`,
		`{"input":[{"content":[{"type":"input_image","image_url":"data:image/png;base64,` + strings.Repeat("A", 5000) + `"}]},{"type":"input_file","file_data":"x"}]}`,
		`{"tools":[{"name":"WebSearch","input_schema":{}},{"type":"tool_search_tool_regex_20251119","name":"t"},{"type":"bash_20250124","name":"b"},{"type":"custom","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}}`,
		`{"tools":[{"functionDeclarations":[{"name":"googleSearch"}]}],"contents":[{"parts":[{"text":"x"},{"inlineData":{"data":"x"}}]}]}`,
		`{"tools":[{"type":"shell","environment":{"type":"local"}},{"type":"namespace","name":"n","tools":[` + fn + `]},{"type":"tool_search","execution":"client"}]}`,
		`{"tools":[{"type":"custom","name":"a"},{"name":"b","type":null},{"type":"text_editor_20250728","name":"c"},{"type":"computer_20251124","name":"d"},{"type":"memory_20250818","name":"e"},{"type":"local_shell"},{"type":"apply_patch"},{"type":"computer_use_preview"}],"tool_choice":{"type":"any"},"container":null}`,
		`{"tools":[` + fn + `],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"shell"}]}}`,
		`{"toolConfig":{"tools":[{"toolSpec":{"name":"a","inputSchema":{"json":{"tools":[{"systemTool":{}}]}}}},{"cachePoint":{"type":"default"}}],"toolChoice":{"tool":{"name":"a"}}}}`,
		`{"toolConfig":{"functionCallingConfig":{"mode":"ANY"},"retrievalConfig":{}},"additionalModelRequestFields":{"thinking":{"type":"enabled"}}}`,
		`{"messages":[{"content":[{"image":{"format":"png","source":{"bytes":"aaaa"}}},{"toolUse":{"input":{"image":{"source":{"s3Location":{"uri":"s3://a"}}}}}}]}]}`,
		`{"prompt":"text","plugins":[],"connectors":null,"data_sources":[],"search_parameters":null,"enable_search":false}`,
		`{"prompt":"text","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x"},{"type":"server_tool_use","name":"tool_search_tool_regex","input":{}},{"type":"tool_search_tool_result","content":{"type":"tool_search_tool_search_result"}}]},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"a","input_schema":{}}}}]}]}`,
		`{"input":[{"type":"reasoning","summary":[{"type":"summary_text"}]},{"type":"custom_tool_call","input":"x"},{"type":"custom_tool_call_output","output":[{"type":"input_text","text":"x"}]},{"type":"additional_tools","tools":[` + fn + `]},{"type":"input_image","file_id":null}]}`,
		`{"messages":[{"content":[{"type":"side_note","text":"see https://a.example","signature":"x","cache_control":{"type":"ephemeral"}}]}],"previous_response_id":null,"conversation":null}`,
		`{"input":[{"type":"musing","summary":[{"type":"summary_text","text":"x"}],"content":[{"type":"aside","text":"x"},"y"],"encrypted_content":"x","role":"assistant","status":"completed"}]}`,
		"{\n\t\"a\" : [ 1 , -2.5e+3 , true , null , { } ] }\r\n",
	} {
		if out, removed, err := filtered(body); out != body || removed != nil || err != nil {
			t.Errorf("%s\nhas become %s, without %q, %v", body, out, removed, err)
		}
	}
}

func TestRemoves(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{
		`{"type":"web_search","external_web_access":true}`, `{"type":"web_search_20250305","name":"web_search"}`, `{"type":"web_search_preview"}`,
		`{"name":"web_fetch","type":"web_fetch_20250910"}`, `{"type":"code_execution_20250825","name":"code_execution"}`,
		`{"type":"code_interpreter","container":{"type":"auto"}}`, `{"type":"mcp","server_label":"x","server_url":"https://evil.example"}`,
		`{"type":"mcp_toolset","mcp_server_name":"x"}`, `{"googleSearch":{}}`, `{"url_context":{}}`, `{ "codeExecution" : {} }`,
		`{"type":"web_search","type":"function"}`, `{"t\u0079pe":"web\u005fsearch"}`, `{"Type":"WEB_SEARCH"}`,
		`{"type":"shell","environment":{"type":"container_auto"}}`, `{"type":"web_browse_20270101","name":"browse"}`, `{"type":"bash_browse"}`,
		`{"type":["web_search"]}`, `{"webBrowse":{}}`,
	} {
		for _, list := range []string{
			`{"tools":[F,T]}`, ` {"tools" : [T,F]}`, `{"tools":[ T , F ,T]}`, `{"tools":[F, T,F]}`, `{"tools":[T,T,F,F],"tool_choice":"auto"}`,
			`{"t\u006fols":[F,T]}`, `{"toolConfig":{"tools":[T,F]}}`, `{"requests":[{"custom_id":"a","params":{"tools":[F,T]}}]}`, `{"input":[{"type":"tool_search_output","tools":[F,T]}]}`,
		} {
			body := strings.NewReplacer("F", fn, "T", tool).Replace(list)
			out, removed, err := filtered(body)
			if err != nil || len(out) != len(body) || len(removed) != strings.Count(list, "T") {
				t.Errorf("%s\nhas become %s, without %q, %v", body, out, removed, err)
				continue
			}
			want := strings.Count(list, "F")
			if !json.Valid([]byte(out)) || strings.Count(out, fn) != want || strings.Contains(out, tool) {
				t.Errorf("%s\nhas become %s", body, out)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for body, tool := range map[string]string{
		`{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`:                                             "web_search_20250305",
		`{"tools":[` + fn + `,{"type":"web_fetch_20250910","name":"wf"}],"tool_choice":{"type":"tool","name":"wf"}}`: "wf",
		`{"tool_choice":{"type":"tool","name":"wf"},"tools":[` + fn + `,{"type":"web_fetch_20250910","name":"wf"}]}`: "wf",
		`{"tool_choice":{"type":"web_search_preview"},"tools":[` + fn + `]}`:                                         "web_search_preview",
		`{"tool_choice":{"type":"allowed_tools","tools":[{"type":"mcp"}]}}`:                                          "mcp",
		`{"mcp_servers":[{"type":"url","url":"https://evil.example"}]}`:                                              "mcp_servers",
		`{"mcpServers":[{}]}`: "mcp_servers",
		`{"toolConfig":{"tools":[{"systemTool":{"name":"nova_grounding"}}]}}`:                                                    "systemtool",
		`{"tool_config":{"tools":[{"toolSpec":{"name":"a"},"systemTool":{"name":"nova_grounding"}}]}}`:                           "systemtool",
		`{"additionalModelRequestFields":{"mcp_servers":[{}]}}`:                                                                  "mcp_servers",
		`{"additionalModelRequestFields":{"tools":[{"type":"web_search_20250305"}]}}`:                                            "web_search_20250305",
		`{"messages":[{"content":[{"video":{"source":{"s3Location":{"uri":"s3://evil/x"}}}}]}]}`:                                 "address",
		`{"messages":[{"content":[{"toolResult":{"content":[{"document":{"source":{"s3Location":{"uri":"s3://evil/x"}}}}]}}]}]}`: "address",
		`{"prompt":{"id":"pmpt_1","variables":{}}}`:                                                                              "a stored prompt",
		`{"plugins":[{"id":"web"}]}`:           "plugins",
		`{"connectors":[{"id":"web-search"}]}`: "connectors",
		`{"data_sources":[{"type":"azure_search","parameters":{"endpoint":"https://evil.example"}}]}`: "data_sources",
		`{"search_parameters":{"mode":"on"}}`:                            "search_parameters",
		`{"enable_search":true}`:                                         "enable_search",
		`{"container":{"skills":[{"type":"anthropic","skill_id":"x"}]}}`: "container",
		`{"Container":"container_1"}`:                                    "container",
		`{"tools":[` + fn + `],"tool_choice":{"type":"web_browse"}}`:     "web_browse",
		`{"mcp_servers":[],"mcp_servers":[{}]}`:                          "mcp_servers",
		`{"web_search_options":{}}`:                                      "web_search_options",
		`{"tools":{"type":"web_search"}}`:                                "web_search",
		`{"tools":[{"functionDeclarations":[],"googleSearch":{}}]}`:      "googlesearch",
		`{"tools":[{"type":"namespace","tools":[{"type":"mcp"}]}]}`:      "mcp",
		`{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://evil.example/?x"}}]}]}`:                     "address",
		`{"messages":[{"content":[{"type":"document","source":{"url":"https:\/\/evil","type":"url"}}]}]}`:                           "address",
		`{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image","source":{"url":"http://e"}}]}]}]}`:              "address",
		`{"messages":[{"content":[{"type":"document","source":{"type":"content","content":[{"source":{"url":"ftp://e"}}]}}]}]}`:     "address",
		`{"messages":[{"content":[{"type":"image_url","image_url":{"url":" https://evil.example"}}]}]}`:                             "address",
		`{"input":[{"content":[{"type":"input_image","image_url":"https://evil.example/` + strings.Repeat(`\u0041`, 500) + `"}]}]}`: "address",
		`{"input":[{"type":"function_call_output","output":[{"type":"input_file","file_url":"https://evil.example"}]}]}`:            "address",
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://evil.example"}}]}]}`:                                                "address",
		`{"contents":{"parts":{"file_data":{"file_uri":"gs://x"}}}}`:                                                                "address",
		`{"requests":[{"params":{"mcp_servers":[{}]}}]}`:                                                                            "mcp_servers",
		`{"messages":` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`:                                                    "other content",
		`{"messages":[{"source":` + strings.Repeat(`{"s3Location":`, 40) + `{}` + strings.Repeat(`}`, 40) + `}]}`:                   "many others",
		strings.Repeat(`{"requests":[{"body":`, 40) + `{}` + strings.Repeat(`}]}`, 40):                                              "many others",
		`{"mcp_servers":"x"}`:                        "mcp_servers",
		`{"prompt":{"id":"pmpt_1"}}`:                 "stored prompt",
		`{"extra_body":{"tools":[{"type":"mcp"}]}}`:  "mcp",
		`{"params":{"tools":[{"type":"mcp"}]}}`:      "mcp",
		`{"extra_body":{"params":{"container":{}}}}`: "container",
		`{"messages":[{"role":"assistant","content":[{"type":"server_tool_use","name":"web_fetch","input":{"url":"https://evil.example"}}]}]}`:        "server_tool_use of web_fetch",
		`{"messages":[{"role":"assistant","content":[{"type":"mcp_tool_use","name":"x","server_name":"y"}]}]}`:                                        "mcp_tool_use",
		`{"messages":[{"role":"user","content":[{"type":"web_fetch_tool_result","content":{}}]}]}`:                                                    "web_fetch_tool_result",
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}`:                                  "stored at the service",
		`{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file_1"}}]}]}`:                                                      "stored at the service",
		`{"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"file_1"}]}]}`:                                                   "container_upload",
		`{"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_fetch_1"}}}]}]}`: "web_fetch_1",
		`{"input":[{"content":[{"type":"input_file","file_id":"file_1"}]}]}`:                                                                          "stored at the service",
		`{"input":[{"type":"web_search_call","action":{"query":"x"}}]}`:                                                                               "web_search_call",
		`{"input":[{"type":"message","type":"mcp_call"}]}`:                                                                                            "mcp_call",
		`{"previous_response_id":"resp_1","input":"x"}`:                                                                                               "previous_response_id",
		`{"previousResponseId":"resp_1"}`:                                                           "previous_response_id",
		`{"conversation":{"id":"conv_1"}}`:                                                          "conversation",
		`{"conversation":"conv_1"}`:                                                                 "conversation",
		`{"cachedContent":"cachedContents/x","contents":[]}`:                                        "cached_content",
		`{"input_file_id":"file_1","endpoint":"/v1/responses"}`:                                     "stored at the service",
		`{"input":[{"type":"item_reference","id":"msg_1"}]}`:                                        "item_reference",
		`{"input":[{"id":"msg_1"}]}`:                                                                "an item without a type",
		`{"messages":[{"content":[{"type":"web_page","text":"https://evil.example"}]}]}`:            "web_page",
		`{"messages":[{"content":[{"type":"aside","href":"https://evil.example"}]}]}`:               "aside",
		`{"messages":[{"content":[{"type":"aside","text":{"href":"https://evil.example"}}]}]}`:      "aside",
		`{"messages":[{"content":[{"type":"aside","content":{"href":"https://evil.example"}}]}]}`:   "aside",
		`{"messages":[{"content":[{"type":"aside","content":[{"href":"https://evil.example"}]}]}]}`: "aside",
		`{"messages":[{"content":[{"type":"aside","content":[[{"href":"https://evil"}]]}]}]}`:       "aside",
		`{"input":[{"type":"aside","text":"x","id":"item_1"}]}`:                                     "aside",
		`{"input":[{"type":"aside","summary":[{"type":"mcp_call"}]}]}`:                              "mcp_call",
		`{"input":[{"type":["mcp_call"]}]}`:                                                         "unknown type",
		strings.Repeat(`{"requests":[{"body":`, 40) + `{}` + strings.Repeat(`}]}`, 40):              "many others",
	} {
		_, _, err := filtered(body)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Tool, tool) {
			t.Errorf("%.300s: %v", body, err)
		}
	}
	// A service might accept these bodies although they are not JSON.
	for _, body := range []string{
		"x=y", "{", `{"a":1`, `{"a":1}}`, `{"a":1}{"mcp_servers":[{}]}`, `{"a" 1}`, `{"a":1,}`, `[1,]`, `{'a':1}`, `{a:1}`, "{\"a\":\"\n\"}", "\xef\xbb\xbf{}", "{\x00\"\x00",
		"\x00{", `// x`, `[}`, `{]`, strings.Repeat("[", 1<<20), "{\"\xff\":1}", `{"\q":1}`, `tool=web_search`, "12 13", `"`,
	} {
		var e *Error
		if out, _, err := filtered(body); !errors.As(err, &e) || e.Tool != "" {
			t.Errorf("%.100q has become %.100q, %v", body, out, err)
		}
	}
}

// reading writes the tokens of a request, one a line, in the order of the text.
func reading(v gjson.Result, to *strings.Builder) {
	switch {
	case v.Type == gjson.Number:
		fmt.Fprintln(to, v.Raw)
		return
	case v.Type != gjson.JSON:
		fmt.Fprintln(to, v.Value())
		return
	}
	fmt.Fprintln(to, v.Raw[:1])
	v.ForEach(func(key, value gjson.Result) bool {
		if v.IsObject() {
			fmt.Fprintln(to, key.Str)
		}
		reading(value, to)
		return true
	})
	fmt.Fprintln(to, v.Raw[len(v.Raw)-1:])
}

// standardReading returns the same for the standard library's decoder.
func standardReading(body []byte) string {
	var to strings.Builder
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil {
			return to.String()
		}
		fmt.Fprintln(&to, t)
	}
}

// A filtered body is still JSON of the same length, and a second pass finds nothing in it.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{
		`{"tools":[` + fn + `,{"type":"web_search"}],"tool_choice":{"type":"auto"}}`, `{"messages":[{"content":[{"source":{"url":"https://a"}}]}]}`,
		`{"requests":[{"params":{"mcp_servers":[]}}]}`, `{"tools":[{"type":"mcp"} , 1, "x",{"a":[{}]}]}`, `{"input":[{"tools":[1,{"googleSearch":{}}]}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"a\\":["\"","\\",{"\\\"":1e3,"":null}],"\ud83d\ude00\/":[[],{},-0.5, true]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		out, _, err := filtered(string(body))
		// The two decoders treat unpaired UTF-16 surrogates differently.
		if json.Valid(body) && utf8.Valid(body) && !bytes.Contains(bytes.ToLower(body), []byte(`\ud`)) {
			var read strings.Builder
			if reading(gjson.ParseBytes(bytes.TrimSpace(body)), &read); read.String() != standardReading(body) {
				t.Fatalf("%q reads as %q, not %q", body, read.String(), standardReading(body))
			}
		}
		if err != nil {
			return
		}
		if len(out) != len(body) {
			t.Fatalf("%d bytes have become %d", len(body), len(out))
		}
		if json.Valid(body) && !json.Valid([]byte(out)) {
			t.Fatalf("%q has become %q", body, out)
		}
		again, removed, err := filtered(out)
		if err != nil || removed != nil || again != out {
			t.Fatalf("%q still has %q, %v", out, removed, err)
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	body := `{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":[{"type":"text","text":"`+strings.Repeat("words \\n ", 100)+`"}]},`, 200) + `{}],"tools":[` + fn + `]}`
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := Filter([]byte(body)); err != nil {
			b.Fatal(err)
		}
	}
}
