package agents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
)

func TestCodexInvocation(t *testing.T) {
	t.Parallel()
	const bypass = "--dangerously-bypass-approvals-and-sandbox"
	for name, c := range map[string]struct {
		request agents.Request
		argv    []string // after "codex exec"
	}{
		"nothing asked": {agents.Request{}, []string{"--json", "--skip-git-repo-check", "-c", `sandbox_mode="workspace-write"`, "-"}},
		"skip": {agents.Request{Options: agents.Options{SkipPermissions: true, Model: "gpt-5.5", Effort: "high"}},
			[]string{"--json", "--skip-git-repo-check", bypass, "-m", "gpt-5.5", "-c", `model_reasoning_effort="high"`, "-"}},
		"mode replaces skip": {agents.Request{Options: agents.Options{SkipPermissions: true, PermissionMode: "read-only"}},
			[]string{"--json", "--skip-git-repo-check", "-c", `sandbox_mode="read-only"`, "-"}},
		"resume": {agents.Request{Session: "0f3c2a10-0000-4000-8000-0000000000b1", Options: agents.Options{SkipPermissions: true, Args: []string{"-i", "a.png"}}},
			[]string{"resume", "0f3c2a10-0000-4000-8000-0000000000b1", "--json", "--skip-git-repo-check", bypass, "-", "-i", "a.png"}},
	} {
		c.request.Prompt = "do it"
		inv, err := agents.Codex{}.Invocation(c.request)
		want := append([]string{"codex", "exec"}, c.argv...)
		if err != nil || !slices.Equal(inv.Argv, want) || inv.Stdin != "do it" || len(inv.Env) != 0 {
			t.Errorf("%s: %+v, %v, want %q", name, inv, err, want)
		}
	}
}

func codexItem(kind, fields string) string {
	return fmt.Sprintf(`{"type":"item.%s","item":{%s}}`, kind, fields)
}

func TestCodexEvents(t *testing.T) {
	t.Parallel()
	tool := func(name, detail string) []agents.Event {
		return []agents.Event{{Kind: agents.EventTool, Name: name, Detail: detail}}
	}
	for name, c := range map[string]struct {
		lines []string
		want  []agents.Event
	}{
		"each message item is a message": {
			[]string{codexItem("completed", `"id":"a","type":"agent_message","text":"x"`), codexItem("completed", `"id":"b","type":"agent_message","text":"y\n"`)},
			[]agents.Event{{Kind: agents.EventMessage, Message: "a", Text: "x"}, {Kind: agents.EventMessage, Message: "b", Text: "y\n"}},
		},
		"reasoning and output are not prose": {
			[]string{codexItem("completed", `"id":"a","type":"reasoning","text":"<promise>COMPLETE</promise>"`),
				codexItem("updated", `"id":"b","type":"command_execution","command":"x","aggregated_output":"<promise>COMPLETE</promise>"`)},
			nil,
		},
		"a command is told once": {
			[]string{codexItem("started", `"id":"a","type":"command_execution","command":"go test"`), codexItem("completed", `"id":"a","type":"command_execution","command":"go test"`)},
			tool("command", "go test"),
		},
		"a command that was never started": {
			[]string{codexItem("completed", `"id":"a","type":"command_execution","command":["go","test"]`)},
			tool("command", "go test"),
		},
		"changed files": {
			[]string{codexItem("started", `"id":"a","type":"file_change"`), codexItem("completed", `"id":"a","type":"file_change","changes":[{"path":"a.go"},{"path":"b.go"},{}]`)},
			tool("file_change", "a.go and 2 more"),
		},
		"a change of another type": {
			[]string{codexItem("completed", `"id":"a","type":"file_change","changes":[{"path":"a.go"},7]`)},
			[]agents.Event{
				{Kind: agents.EventTool, Name: "file_change", Detail: "a.go and 1 more"},
				{Kind: agents.EventUnknown, Name: "unexpected JSON", Text: codexItem("completed", `"id":"a","type":"file_change","changes":[{"path":"a.go"},7]`)},
			},
		},
		"a search":    {[]string{codexItem("completed", `"id":"a","type":"web_search","query":"go 1.26"`)}, tool("web_search", "go 1.26")},
		"an MCP call": {[]string{codexItem("started", `"id":"a","type":"mcp_tool_call","server":"s","tool":"t"`)}, tool("s/t", "")},
		"a notice": {
			[]string{codexItem("completed", `"id":"a","type":"error","message":"Model metadata not found."`)},
			[]agents.Event{{Kind: agents.EventNotice, Text: "Model metadata not found."}},
		},
		"waiting": {
			[]string{`{"type":"error","message":"Reconnecting... 1/5 (unexpected status 503)"}`},
			[]agents.Event{{Kind: agents.EventRetry, Text: "Reconnecting... 1/5 (unexpected status 503)"}},
		},
		"an item of a kind to come": {
			[]string{codexItem("completed", `"id":"a","type":"hologram"`)},
			[]agents.Event{{Kind: agents.EventUnknown, Name: "unknown event item hologram", Text: codexItem("completed", `"id":"a","type":"hologram"`)}},
		},
	} {
		got, _ := decode(agents.Codex{}, agents.Ending{}, c.lines...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

const codexDone = `{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"cache_write_input_tokens":1,"output_tokens":3}}`

func TestCodexFailures(t *testing.T) {
	t.Parallel()
	failed := func(message string) []string {
		return []string{fmt.Sprintf(`{"type":"turn.failed","error":{"message":%q}}`, message)}
	}
	for name, c := range map[string]struct {
		lines   []string
		ending  agents.Ending
		class   agents.Class
		message string
		resetAt time.Time
	}{
		"status":               {failed("unexpected status 403 Forbidden: no"), agents.Ending{ExitCode: 1}, agents.Auth, "codex login", time.Time{}},
		"no credit":            {failed("unexpected status 402 Payment Required: Insufficient Balance"), agents.Ending{ExitCode: 1}, agents.NoCredit, "pay in", time.Time{}},
		"no credit, by code":   {failed(`{"error":{"code":"insufficient_quota","message":"You exceeded your current quota."}}`), agents.Ending{ExitCode: 1}, agents.NoCredit, "quota. (the account has no credit left", time.Time{}},
		"no credit, by status": {failed("exceeded retry limit, last status: 429 Too Many Requests: You exceeded your current quota, please check your plan and billing details"), agents.Ending{ExitCode: 1}, agents.NoCredit, "pay in", time.Time{}},
		"login refused":        {failed("unexpected status 401 Unauthorized: no"), agents.Ending{ExitCode: 1}, agents.Auth, "the login is missing or was refused: run codex login", time.Time{}},
		"usage limit":          {failed("You've hit your usage limit. Try again later."), agents.Ending{ExitCode: 1}, agents.RateLimit, "usage limit", time.Time{}},
		"limit with its end":   {failed(`{"error":{"type":"usage_limit_reached","message":"later","resets_at":1790000000}}`), agents.Ending{ExitCode: 1}, agents.RateLimit, "later", time.Unix(1_790_000_000, 0)},
		"the service's code":   {failed(`{"error":{"code":"model_not_found","message":"no such model"}}`), agents.Ending{ExitCode: 1}, agents.ModelNotFound, "no such model", time.Time{}},
		"the service's detail": {failed(`{"detail":"The model is not supported."}`), agents.Ending{ExitCode: 1}, agents.BadRequest, "not supported", time.Time{}},
		"a status in its JSON": {failed(`{"error":{"message":"unexpected status 429"}}`), agents.Ending{ExitCode: 1}, agents.BadRequest, "429", time.Time{}},
		"cut off":              {failed("stream disconnected before completion: x"), agents.Ending{ExitCode: 1}, agents.Overload, "disconnected", time.Time{}},
		"no known error":       {failed("rate limit? overload?"), agents.Ending{ExitCode: 1}, agents.OtherFailure, "rate limit?", time.Time{}},
		"failed, status 0":     {failed("x"), agents.Ending{}, agents.OtherFailure, "x", time.Time{}},
		"failed, then killed":  {failed("unexpected status 401 x"), agents.Ending{Signal: "SIGTERM"}, agents.Auth, "401", time.Time{}},
		"failed in odd form":   {[]string{`{"type":"turn.failed","error":"x"}`}, agents.Ending{}, agents.OtherFailure, "failed turn", time.Time{}},
		"error, no more":       {[]string{`{"type":"error","message":"boom"}`}, agents.Ending{}, agents.OtherFailure, "boom", time.Time{}},
		"error, then well":     {[]string{`{"type":"error","message":"boom"}`, codexDone}, agents.Ending{}, "", "", time.Time{}},
		"well, then status 3":  {[]string{codexDone}, agents.Ending{ExitCode: 3, StderrTail: "oops"}, agents.OtherFailure, "oops", time.Time{}},
		"waiting, status 1":    {[]string{`{"type":"error","message":"Reconnecting... 1/5 (unexpected status 401 Unauthorized)"}`}, agents.Ending{ExitCode: 1}, agents.Auth, "401", time.Time{}},
		"waiting, killed":      {[]string{`{"type":"error","message":"Reconnecting... waiting for network"}`}, agents.Ending{Signal: "SIGKILL"}, agents.Killed, "waiting for network", time.Time{}},
		"waited, then worked":  {[]string{`{"type":"error","message":"Reconnecting... 1/5"}`, codexItem("completed", `"type":"agent_message","text":"x"`)}, agents.Ending{ExitCode: 1}, agents.OtherFailure, "status 1", time.Time{}},
		"bad configuration":    {nil, agents.Ending{ExitCode: 1, StderrTail: "Error loading config.toml: x"}, agents.BadRequest, "config.toml", time.Time{}},
		"not executable":       {nil, agents.Ending{ExitCode: 126}, agents.NotStarted, "could not be executed (status 126", time.Time{}},
	} {
		_, report := decode(agents.Codex{}, c.ending, c.lines...)
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

// TestCodexUsage: cached input is subtracted, and so is the usage of the process that was resumed.
func TestCodexUsage(t *testing.T) {
	t.Parallel()
	usage := func(name string) agents.Report {
		_, report := decode(agents.Codex{}, agents.Ending{}, recordedLines(t, "codex", name)...)
		return report
	}
	_, report := decode(agents.Codex{}, agents.Ending{}, codexDone)
	if want := (agents.Usage{Input: 5, Output: 3, CacheRead: 4, CacheWrite: 1}); report.Usage != want {
		t.Errorf("usage %+v, want %+v", report.Usage, want)
	}
	first, resumed := usage("resume-1-first"), usage("resume-2-resumed")
	if got, want := first.Spent(agents.Usage{}), (agents.Usage{Input: 1200, Output: 42, CacheRead: 800}); got != want {
		t.Errorf("the first process spent %+v, want %+v", got, want)
	}
	if got, want := resumed.Spent(first.Usage), (agents.Usage{Input: 2400, Output: 84, CacheRead: 1600}); got != want {
		t.Errorf("the resumed process spent %+v, want %+v", got, want)
	}
}
