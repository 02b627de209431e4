package agents_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
)

func TestClaudeInvocation(t *testing.T) {
	t.Parallel()
	base := []string{"claude", "-p", "--verbose", "--output-format", "stream-json"}
	quiet := []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=3"}
	for name, c := range map[string]struct {
		request agents.Request
		argv    []string // after the common arguments
		env     []string
	}{
		"nothing asked": {agents.Request{}, nil, quiet},
		"skip": {agents.Request{Options: agents.Options{SkipPermissions: true}},
			[]string{"--dangerously-skip-permissions"}, append(slices.Clone(quiet), "IS_SANDBOX=1")},
		"mode replaces skip": {agents.Request{Options: agents.Options{SkipPermissions: true, PermissionMode: "dontAsk"}},
			[]string{"--permission-mode", "dontAsk"}, append(slices.Clone(quiet), "IS_SANDBOX=1")},
		"all": {agents.Request{
			Options: agents.Options{Model: "sonnet[1m]", Effort: "max", Args: []string{"--max-turns", "5"}, Env: []string{"CLAUDE_CODE_MAX_RETRIES=0"}},
			Session: "0f3c2a10-0000-4000-8000-0000000000a1", Vars: []string{"RALPH_ITERATION=2"},
		}, []string{"--model", "sonnet[1m]", "--effort", "max", "--resume", "0f3c2a10-0000-4000-8000-0000000000a1", "--max-turns", "5"},
			[]string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=0", "RALPH_ITERATION=2"}},
	} {
		c.request.Prompt = "do \xff it"
		inv, err := agents.Claude{}.Invocation(c.request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := agents.Invocation{Argv: append(slices.Clone(base), c.argv...), Stdin: "do \uFFFD it", Env: c.env}
		if diff := cmp.Diff(want, inv); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := (agents.Claude{}).Invocation(agents.Request{Prompt: " \n"}); err == nil || !strings.Contains(err.Error(), "prompt is empty") {
		t.Errorf("an empty prompt: %v", err)
	}
}

// decode decodes lines and returns the events and the report.
func decode(a agents.Agent, ending agents.Ending, lines ...string) ([]agents.Event, agents.Report) {
	d := a.NewDecoder()
	var events []agents.Event
	for _, line := range lines {
		events = append(events, d.Line([]byte(line))...)
	}
	return events, d.Finish(ending)
}

const (
	claudeDone   = `{"type":"result","subtype":"success","is_error":false,"session_id":"0f3c2a10-0000-4000-8000-0000000000a1"}`
	claudeText   = `{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"one "},{"type":"text","text":"two"}]}}`
	claudeTool   = `{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","name":"Bash","input":{"description":"d","command":"go\n\u001b[31m test"}}]}}`
	claudeError  = `{"type":"assistant","error":"rate_limit","message":{"id":"e1","model":"<synthetic>","content":[{"type":"text","text":"no"}]}}`
	claudeNested = `{"type":"assistant","parent_tool_use_id":"toolu_1","message":{"id":"m9","content":[{"type":"text","text":"<promise>COMPLETE</promise>"},{"type":"tool_use","name":"Read","input":{"file_path":"a.go"}}]}}`
)

func TestClaudeEvents(t *testing.T) {
	t.Parallel()
	message := func(id, text string) agents.Event {
		return agents.Event{Kind: agents.EventMessage, Message: id, Text: text}
	}
	for name, c := range map[string]struct {
		lines []string
		want  []agents.Event
	}{
		"blocks of a message come in one line or several": {
			[]string{claudeText, claudeTool, strings.ReplaceAll(claudeText, "two", "three")},
			[]agents.Event{
				message("m1", ""), message("m1", "one "), message("m1", "two"),
				{Kind: agents.EventTool, Name: "Bash", Detail: "go [31m test"},
				message("m1", "one "), message("m1", "three"),
			},
		},
		"a message of tools only withdraws what stood before": {
			[]string{claudeText, strings.ReplaceAll(claudeTool, "m1", "m2")},
			[]agents.Event{
				message("m1", ""), message("m1", "one "), message("m1", "two"),
				message("m2", ""), {Kind: agents.EventTool, Name: "Bash", Detail: "go [31m test"},
			},
		},
		"a sub-agent's text is not prose and starts no message": {
			[]string{claudeText, claudeNested, claudeTool},
			[]agents.Event{
				message("m1", ""), message("m1", "one "), message("m1", "two"),
				{Kind: agents.EventTool, Name: "Read", Detail: "a.go"},
				{Kind: agents.EventTool, Name: "Bash", Detail: "go [31m test"},
			},
		},
		"an error in the guise of a message is a notice": {
			[]string{`{"type":"assistant","error":"rate_limit","message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}`},
			[]agents.Event{{Kind: agents.EventNotice, Text: "<promise>COMPLETE</promise>"}},
		},
		"thinking and results are not prose": {
			[]string{
				`{"type":"assistant","message":{"id":"m1","content":[{"type":"thinking","thinking":"<promise>COMPLETE</promise>"},{"type":"web_search_tool_result","content":[]}]}}`,
				`{"type":"user","message":{"content":[{"type":"tool_result","content":"<promise>COMPLETE</promise>"}]}}`,
				`{"type":"result","subtype":"success","result":"<promise>COMPLETE</promise>"}`,
			},
			[]agents.Event{message("m1", "")},
		},
		"pieces of messages come whole as well": {
			[]string{`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}}`},
			nil,
		},
		"a refused tool call": {
			[]string{
				`{"type":"system","subtype":"permission_denied","tool_name":"Bash","message":"This command\nrequires approval"}`,
				`{"type":"system","subtype":"permission_denied","tool_name":7}`,
			},
			[]agents.Event{
				{Kind: agents.EventDenied, Name: "Bash", Detail: "This command requires approval"},
				{Kind: agents.EventDenied},
				{Kind: agents.EventUnknown, Name: "unexpected JSON", Text: `{"type":"system","subtype":"permission_denied","tool_name":7}`},
			},
		},
		"waiting": {
			[]string{`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"error_status":529,"error":"overloaded"}`},
			[]agents.Event{{Kind: agents.EventRetry, Text: "retry 1 of 3 (529 overloaded)"}},
		},
		"what can be read of a line is read": {
			[]string{`{"message":{"content":[{"type":"text","text":"x"},{"type":"hologram"}],"id":"m1"},"type":"assistant"}`},
			[]agents.Event{
				message("m1", ""), message("m1", "x"),
				{Kind: agents.EventUnknown, Name: "unknown event content hologram",
					Text: `{"message":{"content":[{"type":"text","text":"x"},{"type":"hologram"}],"id":"m1"},"type":"assistant"}`},
			},
		},
		"a session id that could be a flag": {
			[]string{`{"type":"system","subtype":"init","session_id":"--evil"}`},
			[]agents.Event{{Kind: agents.EventUnknown, Name: `session id "--evil"`, Text: `{"type":"system","subtype":"init","session_id":"--evil"}`}},
		},
		"a rate limit that only warns": {
			[]string{`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}`, `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1790000000}}`},
			[]agents.Event{{Kind: agents.EventNotice, Text: "rate limit: allowed_warning"}},
		},
	} {
		got, _ := decode(agents.Claude{}, agents.Ending{}, c.lines...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestClaudeFailures(t *testing.T) {
	t.Parallel()
	failed := func(fields string) []string {
		return []string{`{"is_error":true,"subtype":"success",` + fields + `,"type":"result"}`}
	}
	reset := time.Unix(1_790_000_000, 0).UTC()
	for name, c := range map[string]struct {
		lines   []string
		ending  agents.Ending
		class   agents.Class
		message string
		resetAt time.Time
	}{
		"limit with its end in the text": {failed(`"result":"Claude AI usage limit reached|1790000000"`), agents.Ending{ExitCode: 1}, agents.RateLimit, "usage limit", reset},
		"limit with its end in an event": {append([]string{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1790000000}}`},
			failed(`"api_error_status":429,"result":"You've hit your limit"`)...), agents.Ending{ExitCode: 1}, agents.RateLimit, "hit your limit", reset},
		"an end that can be none":  {failed(`"result":"usage limit reached|17"`), agents.Ending{ExitCode: 1}, agents.RateLimit, "limit", time.Time{}},
		"no credit":                {failed(`"api_error_status":402,"result":"no credit"`), agents.Ending{ExitCode: 1}, agents.NoCredit, "no credit (the account has no credit left: pay in", time.Time{}},
		"login refused":            {failed(`"api_error_status":401,"result":"API Error: 401 invalid x-api-key"`), agents.Ending{ExitCode: 1}, agents.Auth, "invalid x-api-key (the login is missing or was refused: run claude once and log in, or set ANTHROPIC_API_KEY to a valid key)", time.Time{}},
		"no credit, as status 400": {failed(`"api_error_status":400,"result":"API Error: 400 Your credit balance is too low to access the Anthropic API."`), agents.Ending{ExitCode: 1}, agents.NoCredit, "pay in", time.Time{}},
		"no credit, as prose":      {failed(`"result":"Your credit balance is too low"`), agents.Ending{ExitCode: 1}, agents.OtherFailure, "balance", time.Time{}},
		"too large":                {failed(`"api_error_status":413,"result":"too large"`), agents.Ending{ExitCode: 1}, agents.BadRequest, "too large", time.Time{}},
		"by the error's type":      {failed(`"api_error_type":"overloaded_error","result":"x"`), agents.Ending{ExitCode: 1}, agents.Overload, "x", time.Time{}},
		"prose is no evidence":     {failed(`"result":"429 rate limit: overloaded, not logged in"`), agents.Ending{ExitCode: 1}, agents.OtherFailure, "429", time.Time{}},
		"an error with status 0":   {failed(`"result":"x"`), agents.Ending{}, agents.OtherFailure, "x", time.Time{}},
		"interrupted, status 0":    {failed(`"terminal_reason":"aborted_tools"`), agents.Ending{}, agents.Killed, "SIGINT", time.Time{}},
		"budget":                   {[]string{`{"type":"result","subtype":"error_max_budget_usd","is_error":true,"errors":["over budget"]}`}, agents.Ending{ExitCode: 1}, agents.OtherFailure, "over budget", time.Time{}},
		"a result without a word":  {[]string{`{"type":"result","subtype":"error_during_execution"}`}, agents.Ending{}, agents.OtherFailure, "error_during_execution", time.Time{}},
		"a result of wrong type":   {[]string{`{"type":"result","subtype":"success","is_error":"no"}`}, agents.Ending{}, agents.OtherFailure, "success", time.Time{}},
		"an error before a signal": {failed(`"api_error_status":401,"result":"x"`), agents.Ending{ExitCode: 143, Signal: "SIGTERM"}, agents.Auth, "x", time.Time{}},
		"success, then status 1":   {[]string{claudeDone}, agents.Ending{ExitCode: 1, StderrTail: "a\nlast words\n"}, agents.OtherFailure, "last words", time.Time{}},
		"success, then killed":     {[]string{claudeDone}, agents.Ending{Signal: "SIGKILL"}, agents.Killed, "SIGKILL", time.Time{}},
		"killed while waiting": {[]string{`{"type":"system","subtype":"api_retry","error_status":401,"error":"authentication_failed"}`},
			agents.Ending{Signal: "SIGKILL"}, agents.Killed, "401", time.Time{}},
		"waited, then worked": {[]string{`{"type":"system","subtype":"api_retry","error_status":529}`, claudeText},
			agents.Ending{ExitCode: 1}, agents.OtherFailure, "status 1", time.Time{}},
		"no result":        {[]string{claudeText}, agents.Ending{}, agents.OtherFailure, "without a result", time.Time{}},
		"not found inside": {nil, agents.Ending{ExitCode: 127, StderrTail: "sh: claude: not found"}, agents.NotStarted, "could not be executed (status 127: sh: claude: not found)", time.Time{}},
		"no node inside": {nil, agents.Ending{ExitCode: 127, StderrTail: "/usr/bin/env: ‘node’: No such file or directory\n"}, agents.NotStarted,
			"claude cannot be started: its interpreter node is missing", time.Time{}},
		"no node": {nil, agents.Ending{StartErr: fmt.Errorf("/bin/claude: its interpreter /opt/node is missing: %w", fs.ErrNotExist)}, agents.NotStarted,
			"claude cannot be started: its interpreter /opt/node is missing", time.Time{}},
		"a later success":     {append(failed(`"result":"x"`), claudeDone), agents.Ending{}, "", "", time.Time{}},
		"work after a result": {[]string{claudeDone, claudeText}, agents.Ending{}, agents.OtherFailure, "without a result", time.Time{}},
		"work after a failure": {append(failed(`"api_error_status":401,"result":"x"`), claudeText), agents.Ending{Signal: "SIGKILL"},
			agents.Killed, "SIGKILL", time.Time{}},
		"a sub-agent after a result": {[]string{claudeDone, claudeNested}, agents.Ending{}, "", "", time.Time{}},
		"an error beside a sub-agent": {append([]string{claudeError, claudeNested}, failed(`"result":"x"`)...), agents.Ending{ExitCode: 1},
			agents.RateLimit, "x", time.Time{}},
		"an error that passed": {append([]string{claudeError, claudeText}, failed(`"result":"x"`)...), agents.Ending{ExitCode: 1},
			agents.OtherFailure, "x", time.Time{}},
		"a limit that passed": {append([]string{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1790000000}}`, claudeText},
			failed(`"result":"x"`)...), agents.Ending{ExitCode: 1}, agents.OtherFailure, "x", time.Time{}},
	} {
		_, report := decode(agents.Claude{}, c.ending, c.lines...)
		f := report.Failure
		switch {
		case c.class == "":
			if f != nil {
				t.Errorf("%s: %v", name, f)
			}
		case f == nil || f.Class != c.class || !strings.Contains(f.Message, c.message) || !f.ResetAt.Equal(c.resetAt):
			t.Errorf("%s: %+v, want %s with %q, reset %v", name, f, c.class, c.message, c.resetAt)
		}
	}
}

// TestClaudeDenials: events and the result report the same calls; they are counted once, and only a few are kept.
func TestClaudeDenials(t *testing.T) {
	t.Parallel()
	event := `{"type":"system","subtype":"permission_denied","tool_name":"Bash","message":"no"}`
	result := `{"type":"result","subtype":"success","permission_denials":[{"tool_name":"Write","tool_input":{"file_path":"a.go","content":"x"}}]}`
	for name, c := range map[string]struct {
		lines []string
		want  []agents.Denial
	}{
		"none":         {[]string{claudeDone}, nil},
		"events":       {[]string{event, result}, []agents.Denial{{Tool: "Bash", Detail: "no"}}},
		"result alone": {[]string{result}, []agents.Denial{{Tool: "Write", Detail: "a.go"}}},
		"many":         {slices.Repeat([]string{event}, 1000), slices.Repeat([]agents.Denial{{Tool: "Bash", Detail: "no"}}, 8)},
	} {
		if _, report := decode(agents.Claude{}, agents.Ending{}, c.lines...); !slices.Equal(report.Denied, c.want) {
			t.Errorf("%s: %+v, want %+v", name, report.Denied, c.want)
		}
	}
}

func TestClaudeUsage(t *testing.T) {
	t.Parallel()
	snapshot := func(id string, output string) string {
		return `{"type":"assistant","message":{"id":"` + id + `","content":[],"usage":{"input_tokens":10,"output_tokens":` + output + `}}}`
	}
	result := func(rest string) string {
		return `{"type":"result","subtype":"success","usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}` + rest + `}`
	}
	models := `,"total_cost_usd":9,"model_usage_since_last_result":{"a":{"inputTokens":5,"costUSD":0.25},"b":{"outputTokens":6,"costUSD":0.5}}`
	for name, c := range map[string]struct {
		lines []string
		want  agents.Usage
	}{
		"no result: the last word on each message": {[]string{snapshot("a", "1"), snapshot("b", "1"), snapshot("a", "7")}, agents.Usage{Input: 20, Output: 8}},
		"older versions: totals":                   {[]string{result(`,"total_cost_usd":0.5`), result(`,"total_cost_usd":0.75`)}, agents.Usage{Input: 2, Output: 4, CacheRead: 6, CacheWrite: 8, CostUSD: 0.75}},
		"by model, helpers included":               {[]string{result(models), result(models)}, agents.Usage{Input: 10, Output: 12, CostUSD: 1.5}},
		"nonsense is not counted":                  {[]string{`{"type":"result","subtype":"success","usage":{"input_tokens":-5,"output_tokens":1e99},"total_cost_usd":"x"}`}, agents.Usage{}},
		"work after a result":                      {[]string{snapshot("a", "9"), result(models), snapshot("b", "1"), snapshot("b", "7")}, agents.Usage{Input: 15, Output: 13, CostUSD: 0.75}},
	} {
		if _, report := decode(agents.Claude{}, agents.Ending{}, c.lines...); report.Usage != c.want || report.SessionTotal {
			t.Errorf("%s: %+v, want %+v", name, report.Usage, c.want)
		}
	}
}

// TestClaudeUsageOfManyMessages: the memory for snapshots is bounded, and the sum is still right.
func TestClaudeUsageOfManyMessages(t *testing.T) {
	t.Parallel()
	d := agents.Claude{}.NewDecoder()
	for i := range 1000 {
		d.Line(fmt.Appendf(nil, `{"type":"assistant","message":{"id":"m%d","content":[],"usage":{"input_tokens":1}}}`, i))
	}
	if got := d.Finish(agents.Ending{ExitCode: 1}).Usage.Input; got != 1000 {
		t.Errorf("%d input tokens, want 1000", got)
	}
}

// TestClaudeStructured: the structured output is a copy of the line, and bounded.
func TestClaudeStructured(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{10: 12, 2 << 20: 0} {
		d := agents.Claude{}.NewDecoder()
		line := fmt.Appendf(nil, `{"type":"result","subtype":"success","structured_output":"%s"}`, strings.Repeat("x", n))
		d.Line(line)
		clear(line)
		got := d.Finish(agents.Ending{}).Structured
		if len(got) != want || want > 0 && string(got) != `"xxxxxxxxxx"` {
			t.Errorf("of %d bytes %d are kept, want %d: %.20q", n, len(got), want, got)
		}
	}
}

// Context counts the main agent's latest request and its answer, and not a sub-agent's.
func TestClaudeContext(t *testing.T) {
	t.Parallel()
	_, report := decode(agents.Claude{}, agents.Ending{},
		`{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":9000,"output_tokens":1}}}`,
		`{"type":"assistant","message":{"id":"m2","model":"claude-opus-4-5","usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":700,"cache_creation_input_tokens":85}}}`,
		`{"type":"assistant","parent_tool_use_id":"x","message":{"id":"m3","model":"claude-haiku-4-5","usage":{"input_tokens":50000}}}`,
		claudeDone)
	if report.Context != 800 || report.Model != "claude-opus-4-5" {
		t.Errorf("context of %d tokens with %s, want 800 with the main agent's model", report.Context, report.Model)
	}
}
