package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// claudeDecoder decodes the output of `claude -p --output-format stream-json`.
type claudeDecoder struct {
	Stream
	message      string // ID of the message that the main agent is writing
	model        string // the main agent's model
	usage        Tally  // usage of the messages since the last result, for a process that ends without another result
	context      int64  // tokens of the main agent's latest request and its answer
	apiError     string // error in the latest message that claude made up to report one
	limitEnd     int64  // Unix time of the end of the rate limit that stopped claude
	resultsUsage Usage  // sum of all results
	denied       []Denial
	structured   json.RawMessage
}

const maxStructured = 1 << 20

func (d *claudeDecoder) Line(line []byte) []Event { return d.Stream.Decode(line, d.decode) }

// claudeKind has the common fields of all lines.
type claudeKind struct {
	Type, Subtype string
	SessionID     string `json:"session_id"`
}

func (d *claudeDecoder) decode(line []byte) ([]Event, error) {
	head, err := Read[claudeKind](line)
	if err != nil {
		return nil, err
	}
	switch head.Type {
	case "assistant":
		return d.assistant(line)
	case "result":
		return d.result(line)
	case "system":
		return d.system(line, head)
	case "rate_limit_event":
		return d.rateLimit(line)
	case "user", "stream_event", "tool_progress", "tool_use_summary", "auth_status", "prompt_suggestion",
		"control_request", "control_response", "control_cancel_request", "keep_alive":
		// Tool results, parts of messages that are also sent whole, and communication with a program that embeds claude.
		return nil, nil
	}
	return nil, Unknown(head.Type)
}

func (d *claudeDecoder) system(line []byte, head claudeKind) ([]Event, error) {
	switch head.Subtype {
	case "init":
		return d.Begin(head.SessionID)
	case "api_retry":
		v, err := Read[struct {
			Attempt     int64
			MaxRetries  int64 `json:"max_retries"`
			ErrorStatus int64 `json:"error_status"`
			Error       string
		}](line)
		d.setWaiting(v.ErrorStatus, Clip(v.Error, 60))
		return []Event{{Kind: EventRetry, Text: fmt.Sprintf("retry %d of %d%s", v.Attempt, v.MaxRetries, d.Waiting)}}, err
	case "permission_denied":
		v, err := Read[struct {
			ToolName string `json:"tool_name"`
			Message  string
		}](line)
		denial := Denial{Tool: Clip(v.ToolName, 60), Detail: Clip(v.Message, MaxDetail)}
		d.addDenial(denial)
		return []Event{{Kind: EventDenied, Name: denial.Tool, Detail: denial.Detail}}, err
	case "compact_boundary":
		return []Event{{Kind: EventNotice, Text: "the context was compacted"}}, nil
	case "status", "vcs_state_changed", "thinking_tokens", "ui_invalidate", "microcompact_boundary",
		"hook_started", "hook_progress", "hook_response", "task_started", "task_progress", "task_updated",
		"task_notification", "files_persisted", "local_command_output", "session_state_changed":
		return nil, nil
	}
	return nil, Unknown("system", head.Subtype)
}

func (d *claudeDecoder) setWaiting(status int64, reason string) {
	d.Waiting, d.Class = "", StatusClass(status)
	switch {
	case status != 0:
		d.Waiting = fmt.Sprintf(" (%d %s)", status, reason)
	case reason != "":
		d.Waiting = " (" + reason + ")"
	}
	d.Class = cmp.Or(d.Class, claudeErrorClass(reason), Overload) // without either the service never answered
}

// addDenial keeps the first few refused calls.
func (d *claudeDecoder) addDenial(denial Denial) {
	if len(d.denied) < 8 {
		d.denied = append(d.denied, denial)
	}
}

// rateLimit keeps the end of a limit that stopped claude; a mere warning needs no action.
func (d *claudeDecoder) rateLimit(line []byte) ([]Event, error) {
	v, err := Read[struct {
		Info struct {
			Status   string
			ResetsAt int64 `json:"resetsAt"`
		} `json:"rate_limit_info"`
	}](line)
	if err != nil || v.Info.Status == "allowed" || v.Info.Status == "" {
		return nil, err
	}
	if v.Info.Status == "rejected" {
		d.limitEnd = max(v.Info.ResetsAt, 1)
	}
	return []Event{{Kind: EventNotice, Text: "rate limit: " + Clip(v.Info.Status, 60)}}, nil
}

type claudeBlock struct {
	Type, Text, Name string
	Input            claudeInput
}

// assistant decodes one or more content blocks of a message. Only the main agent's text is prose: not its thinking, not the
// text of a sub-agent, and not an error that claude reports in the form of a message.
func (d *claudeDecoder) assistant(line []byte) ([]Event, error) {
	v, err := Read[struct {
		Parent  *string `json:"parent_tool_use_id"`
		Error   string
		Message *struct {
			ID, Model string
			Content   [256]*claudeBlock
			Usage     claudeUsage
		}
	}](line)
	m, main := v.Message, v.Parent == nil
	if m == nil || err != nil && m.ID == "" && m.Content[0] == nil {
		return nil, ErrShape
	}
	if m.Model == "<synthetic>" {
		d.apiError = Clip(v.Error, 60)
		var events []Event
		for _, b := range m.Content {
			if b != nil && b.Text != "" {
				events = append(events, Event{Kind: EventNotice, Text: Clip(b.Text, MaxDetail)})
			}
		}
		return events, err
	}
	d.Waiting = ""
	id := Clip(m.ID, 128)
	usage, uerr := m.Usage.sum()
	d.usage.Set(id, usage)
	if main {
		d.Finished, d.Failure, d.apiError, d.limitEnd = false, nil, "", 0 // the agent continues
		d.model, d.context = Clip(m.Model, 128), usage.Tokens()+usage.CacheRead
	}
	err = errors.Join(err, uerr)

	var events []Event
	if main && (id == "" || id != d.message) {
		d.message = id
		events = append(events, Event{Kind: EventMessage, Message: id})
	}
	for i, b := range m.Content {
		if b == nil {
			continue
		}
		if i == len(m.Content)-1 {
			err = errors.Join(err, ErrShape) // there may be more than the array holds
		}
		switch {
		case b.Type == "text":
			if main && b.Text != "" {
				events = append(events, Event{Kind: EventMessage, Message: d.message, Text: b.Text})
			}
		case b.Type == "tool_use" || b.Type == "server_tool_use" || b.Type == "mcp_tool_use":
			events = append(events, Event{Kind: EventTool, Name: Clip(b.Name, 60), Detail: string(b.Input)})
		case b.Type == "thinking" || b.Type == "redacted_thinking" || b.Type == "fallback",
			strings.HasSuffix(b.Type, "_tool_result"):
		default:
			err = errors.Join(err, Unknown("content", b.Type))
		}
	}
	return events, err
}

// claudeInput is a one-line summary of a tool's input: the first of a few informative arguments.
type claudeInput string

// UnmarshalJSON never fails: tools may have any input.
func (in *claudeInput) UnmarshalJSON(raw []byte) error {
	var v struct {
		Command, Path, URL, Query, Pattern, Description, Skill LenientString

		File     LenientString `json:"file_path"`
		Notebook LenientString `json:"notebook_path"`
	}
	_ = json.Unmarshal(raw, &v)
	first := cmp.Or(v.Command, v.File, v.Notebook, v.Path, v.URL, v.Query, v.Pattern, v.Description, v.Skill)
	*in = claudeInput(Clip(string(first), MaxDetail))
	return nil
}

// claudeUsage is a usage object of the model service's API.
type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

func (u claudeUsage) sum() (Usage, error) {
	return Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}.Plausible()
}

// claudeModels is the sum of claude's usage by model, which includes sub-agents and small helper models.
type claudeModels struct {
	Usage
	models int
}

// UnmarshalJSON adds up the models one by one.
func (m *claudeModels) UnmarshalJSON(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil //nolint:nilerr // no account
	}
	for dec.More() {
		if _, err := dec.Token(); err != nil { // the model's name
			return err
		}
		var v struct {
			InputTokens, OutputTokens, CacheReadInputTokens, CacheCreationInputTokens int64
			CostUSD                                                                   float64
		}
		if err := dec.Decode(&v); err != nil {
			return ErrShape
		}
		u, err := Usage{
			Input:      v.InputTokens,
			Output:     v.OutputTokens,
			CacheRead:  v.CacheReadInputTokens,
			CacheWrite: v.CacheCreationInputTokens,
			CostUSD:    v.CostUSD,
		}.Plausible()
		if err != nil {
			return err
		}
		m.models, m.Usage = m.models+1, m.Usage.Add(u)
	}
	return nil
}

// claudeResult is claude's own summary at the end of a turn. The last one decides about success, and their usage adds up.
type claudeResult struct {
	claudeKind
	IsError    json.RawMessage `json:"is_error"`
	Terminal   string          `json:"terminal_reason"`
	Status     int64           `json:"api_error_status"`
	ErrorType  string          `json:"api_error_type"`
	Cause      string          `json:"api_error"` // set if the service was not reached
	Result     string
	Errors     [1]string
	Usage      claudeUsage
	Models     claudeModels    `json:"model_usage_since_last_result"`
	Cost       float64         `json:"total_cost_usd"`
	Structured json.RawMessage `json:"structured_output"`
	Denials    [8]*struct {
		ToolName  string      `json:"tool_name"`
		ToolInput claudeInput `json:"tool_input"`
	} `json:"permission_denials"`
}

func (d *claudeDecoder) result(line []byte) ([]Event, error) {
	r, err := Read[claudeResult](line)
	// The usage by model belongs to this result. The total, which older versions have instead, includes earlier results and the
	// resumed session.
	usage := r.Models.Usage
	if r.Models.models == 0 {
		u, uerr := r.Usage.sum()
		u.CostUSD = max(r.Cost-d.resultsUsage.CostUSD, 0)
		u, cerr := u.Plausible()
		usage, err = u, errors.Join(err, uerr, cerr)
	}
	d.Finished, d.resultsUsage, d.usage = true, d.resultsUsage.Add(usage), Tally{}
	if len(r.Structured) <= maxStructured && !bytes.Equal(r.Structured, []byte("null")) {
		d.structured = r.Structured
	}
	if len(d.denied) == 0 { // there were no events
		for _, denial := range r.Denials {
			if denial != nil {
				d.addDenial(Denial{Tool: Clip(denial.ToolName, 60), Detail: string(denial.ToolInput)})
			}
		}
	}
	// A result that cannot be decoded is not a success.
	d.Failure = nil
	if is := string(r.IsError); r.Subtype != "success" || is != "" && is != "false" && is != "null" {
		d.Failure = d.resultFailure(r)
		return nil, err
	}
	events, serr := d.Begin(r.SessionID) // a failed result names a session that could not be resumed
	return events, errors.Join(err, serr)
}

// resultFailure returns the failure in a result.
func (d *claudeDecoder) resultFailure(r claudeResult) *Failure {
	message := cmp.Or(strings.TrimSpace(r.Result), strings.TrimSpace(r.Errors[0]), "claude reported "+r.Subtype)
	limitEnd := d.limitEnd
	if head, unix, ok := strings.Cut(Clip(message, MaxMessage), "|"); ok && strings.HasSuffix(head, "limit reached") {
		n, _ := strconv.ParseInt(strings.TrimSpace(unix), 10, 64)
		limitEnd = max(limitEnd, n)
	}
	// The most precise evidence first: the service's status, then claude's names for errors.
	class := cmp.Or(StatusClass(r.Status), claudeErrorClass(r.ErrorType), claudeErrorClass(r.Cause), claudeErrorClass(d.apiError))
	switch {
	case r.Terminal == "aborted_tools" || r.Terminal == "aborted_streaming": // claude catches SIGINT and exits 0
		return NewFailure(Killed, "claude was interrupted by SIGINT")
	case r.Terminal == "prompt_too_long":
		class = BadRequest
	case r.Subtype == "error_max_turns":
		class = MaxTurns
	case class == "" && limitEnd != 0:
		class = RateLimit
	case class == "":
		class = OtherFailure
	case class == Unreachable && strings.Contains(message, "ECONNRESET"): // an answer had begun
		class = Overload
	case (class == BadRequest || class == RateLimit || class == Auth) && IsNoCreditMessage(message): // the text is the service's, not the model's
		class = NoCredit
	}
	f := NewFailure(class, "%s", Advised(class, message, Claude{}.Describe().Login))
	if class == RateLimit {
		f.ResetAt = ResetTime(limitEnd)
	}
	return f
}

// claudeErrorClass classifies the error names of the service's API and of claude itself; "" for others.
func claudeErrorClass(name string) Class {
	switch name {
	case "authentication_error", "authentication_failed", "permission_error", "oauth_org_not_allowed":
		return Auth
	case "billing_error":
		return NoCredit
	case "rate_limit_error", "rate_limit":
		return RateLimit
	case "overloaded_error", "overloaded", "api_error", "server_error", "timeout_error":
		return Overload
	case "connection_failed":
		return Unreachable
	case "not_found_error", "model_not_found":
		return ModelNotFound
	case "invalid_request_error", "invalid_request", "request_too_large":
		return BadRequest
	}
	return ""
}

// Finish returns the report on the process.
func (d *claudeDecoder) Finish(e Ending) Report {
	r := d.Report(e)
	r.Usage, r.Model, r.Context, r.Denied, r.Structured = d.resultsUsage.Add(d.usage.Sum()), d.model, d.context, d.denied, d.structured
	return r
}
