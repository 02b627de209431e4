package agents

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// codexDecoder decodes the output of `codex exec --json`.
type codexDecoder struct {
	Stream                  // Finished: the turn was completed, without a later error
	started map[string]bool // uncompleted items whose tool event was sent
	usage   Usage
}

func (d *codexDecoder) Line(line []byte) []Event { return d.Stream.Decode(line, d.decode) }

// codexLine has the fields of all kinds of lines, which do not collide.
type codexLine struct {
	Type     string
	ThreadID string `json:"thread_id"`
	Message  string
	Error    struct{ Message string }
	Usage    struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cached_input_tokens"`
		CacheWrite int64 `json:"cache_write_input_tokens"`
	}
	Item codexItem
}

type codexItem struct {
	ID, Type, Text, Message string

	Command             codexCommand
	Server, Tool, Query string
	Changes             [256]*struct{ Path string }
}

func (d *codexDecoder) decode(line []byte) ([]Event, error) {
	v, err := Read[codexLine](line)
	switch v.Type {
	case "thread.started":
		events, berr := d.Begin(v.ThreadID)
		return events, errors.Join(err, berr)
	case "turn.started":
		return nil, err
	case "turn.completed":
		d.Finished, d.Failure, d.Waiting = true, nil, ""
		u, uerr := Usage{Input: v.Usage.Input, Output: v.Usage.Output, CacheRead: v.Usage.CacheRead, CacheWrite: v.Usage.CacheWrite}.Plausible()
		u.Input = max(u.Input-u.CacheRead-u.CacheWrite, 0) // codex counts cached input as input
		d.usage = u
		return nil, errors.Join(err, uerr)
	case "turn.failed":
		d.setFailure(v.Error.Message)
		return nil, err
	case "error":
		if strings.HasPrefix(v.Message, "Reconnecting...") {
			text := Clip(v.Message, MaxDetail)
			d.setWaiting(text)
			return []Event{{Kind: EventRetry, Text: text}}, err
		}
		d.setFailure(v.Message)
		return []Event{{Kind: EventNotice, Text: Clip(v.Message, MaxDetail)}}, err
	case "item.started", "item.updated", "item.completed":
		d.Waiting = ""
		events, ierr := d.item(v.Type, v.Item)
		return events, errors.Join(err, ierr)
	}
	if err != nil {
		return nil, err
	}
	return nil, Unknown(v.Type)
}

func (d *codexDecoder) setWaiting(text string) {
	d.Waiting, d.Class = ": "+text, codexTextClass(text)
	if d.Class == OtherFailure {
		d.Class = Overload // the service was never reached
	}
}

func (d *codexDecoder) setFailure(message string) {
	d.Finished, d.Waiting = false, ""
	d.Failure = codexFailure(message)
}

// item decodes one action of the agent. Its message is prose, but not its reasoning or the output of tools. An error item is a
// notice, which can occur in a successful run.
func (d *codexDecoder) item(kind string, i codexItem) ([]Event, error) {
	completed := kind == "item.completed"
	id := Clip(i.ID, 128)
	switch i.Type {
	case "agent_message", "assistant_message":
		if completed {
			return []Event{{Kind: EventMessage, Message: id, Text: i.Text}}, nil
		}
	case "command_execution", "mcp_tool_call", "collab_tool_call":
		if kind != "item.updated" && d.isNewItem(id, completed) {
			return i.tool(), nil
		}
	case "file_change", "web_search": // their details are known only at the end
		if completed {
			return i.tool(), nil
		}
	case "error":
		if completed {
			return []Event{{Kind: EventNotice, Text: Clip(i.Message, MaxDetail)}}, nil
		}
	case "reasoning", "todo_list":
	default:
		return nil, Unknown("item", i.Type)
	}
	return nil, nil
}

// tool summarises a tool and its arguments in one line.
func (i codexItem) tool() []Event {
	e := Event{Kind: EventTool, Name: i.Type, Detail: Clip(i.Tool, MaxDetail)}
	switch i.Type {
	case "command_execution":
		e.Name, e.Detail = "command", string(i.Command)
	case "web_search":
		e.Detail = Clip(i.Query, MaxDetail)
	case "mcp_tool_call":
		e.Name, e.Detail = Clip(i.Server+"/"+i.Tool, 60), ""
	case "file_change":
		e.Detail = ""
		moreFiles := -1
		for _, change := range i.Changes {
			if change != nil {
				moreFiles++
			}
		}
		if i.Changes[0] != nil {
			e.Detail = Clip(i.Changes[0].Path, MaxDetail-20)
		}
		if moreFiles > 0 {
			e.Detail = fmt.Sprintf("%s and %d more", e.Detail, moreFiles)
		}
	}
	return []Event{e}
}

// codexCommand is a command line as one short line; it is encoded as a string or a list of words.
type codexCommand string

// UnmarshalJSON never fails.
func (c *codexCommand) UnmarshalJSON(raw []byte) error {
	var words [200]LenientString
	if json.Unmarshal(raw, &words[0]) == nil && words[0] == "" {
		_ = json.Unmarshal(raw, &words)
	}
	var line strings.Builder
	for _, w := range words {
		line.WriteString(Clip(string(w), MaxDetail) + " ")
	}
	*c = codexCommand(Clip(line.String(), MaxDetail))
	return nil
}

// isNewItem reports whether an item has no tool event yet. An item without an ID never has one.
func (d *codexDecoder) isNewItem(id string, completed bool) bool {
	if d.started[id] {
		if completed {
			delete(d.started, id)
		}
		return false
	}
	if d.started == nil {
		d.started = map[string]bool{}
	}
	if id != "" && !completed && len(d.started) < 256 {
		d.started[id] = true
	}
	return true
}

// codexFailure interprets the message of an error event. Codex has no fields for the cause: the message is either a fixed text of
// its own, with the HTTP status if there was one, or the service's unmodified JSON, if the service answered 400.
func codexFailure(message string) *Failure {
	message = strings.TrimSpace(message)
	text := Clip(message, MaxMessage)
	if !strings.HasPrefix(message, "{") {
		class := codexTextClass(text)
		if class != OtherFailure && class != Overload && IsNoCreditMessage(text) {
			class = NoCredit
		}
		return NewFailure(class, "%s", Advised(class, cmp.Or(text, "codex reported a failed turn"), Codex{}.Describe().Login))
	}
	body, _ := Read[struct {
		Detail LenientString
		Error  struct {
			Code, Type, Message LenientString
			ResetsAt            int64 `json:"resets_at"`
		}
	}]([]byte(message))
	text = cmp.Or(Clip(string(body.Error.Message), MaxMessage), Clip(string(body.Detail), MaxMessage), text)
	class := cmp.Or(codexCodeClass(string(cmp.Or(body.Error.Code, body.Error.Type))), BadRequest)
	if class != Overload && IsNoCreditMessage(text) {
		class = NoCredit
	}
	f := NewFailure(class, "%s", Advised(class, text, Codex{}.Describe().Login))
	if class == RateLimit {
		f.ResetAt = ResetTime(body.Error.ResetsAt)
	}
	return f
}

// codexTextClass classifies the fixed texts of codex, which no model writes.
func codexTextClass(text string) Class {
	for _, before := range []string{"unexpected status ", "last status: "} {
		if _, after, ok := strings.Cut(text, before); ok && len(after) >= 3 {
			status, _ := strconv.ParseInt(after[:3], 10, 64) // not a number: no status
			if c := StatusClass(status); c != "" {
				return c
			}
			break
		}
	}
	for _, known := range []struct {
		text  string
		class Class
	}{
		{"You've hit your usage limit", RateLimit},
		{"You’ve hit your usage limit", RateLimit},
		{"We’re currently experiencing high demand", Overload},
		{"We're currently experiencing high demand", Overload},
		{"Selected model is at capacity", Overload},
		{"stream disconnected before completion", Overload},
		{"Connection failed", Unreachable},
		{"Quota exceeded", NoCredit},
		{"Your workspace is out of credits", NoCredit},
		{"Missing environment variable", Auth},
		{"Not logged in", Auth},
		{"Codex ran out of room in the model's context window", BadRequest},
	} {
		if strings.HasPrefix(text, known.text) {
			return known.class
		}
	}
	return OtherFailure
}

// codexCodeClass classifies the error codes of the service's API; "" for others.
func codexCodeClass(code string) Class {
	switch code {
	case "invalid_api_key", "unauthorized", "usage_not_included":
		return Auth
	case "insufficient_quota", "billing_hard_limit_reached":
		return NoCredit
	case "rate_limit_exceeded", "usage_limit_reached", "rate_limit_error":
		return RateLimit
	case "server_is_overloaded", "slow_down", "server_error", "overloaded_error":
		return Overload
	case "model_not_found":
		return ModelNotFound
	case "invalid_request_error", "invalid_prompt", "context_length_exceeded":
		return BadRequest
	}
	return ""
}

// Finish returns the report on the process.
func (d *codexDecoder) Finish(e Ending) Report {
	r := d.Report(e)
	r.Usage, r.SessionTotal = d.usage, true
	return r
}
