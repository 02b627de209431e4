package agents

import (
	"errors"
	"fmt"
	"strings"
)

// codexDecoder reads `codex exec --json`.
type codexDecoder struct {
	stream
	started  ring // items whose tool event is out
	usage    Usage
	finished bool   // the turn was completed, with nothing reported since
	failed   bool   // the turn failed, or an error was reported and the turn never completed
	message  string // of that error
	evidence codexEvidence
	waiting  string // the reconnection it is in, or ""
}

func (d *codexDecoder) Line(line []byte) []Event { return d.line(line, d.decode) }

func (d *codexDecoder) decode(line []byte) ([]Event, error) {
	var kindRaw, threadRaw, itemRaw, usageRaw, errorRaw, messageRaw []byte
	err := object(line, field{"type", &kindRaw}, field{"thread_id", &threadRaw}, field{"item", &itemRaw},
		field{"usage", &usageRaw}, field{"error", &errorRaw}, field{"message", &messageRaw})
	if err != nil {
		return nil, err
	}
	kind, err := text(kindRaw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "thread.started":
		thread, err := text(threadRaw)
		if err != nil {
			return nil, err
		}
		return d.begin(thread)
	case "turn.started":
		return nil, nil
	case "turn.completed":
		d.finished, d.failed, d.waiting = true, false, ""
		d.usage, err = codexUsage(usageRaw)
		return nil, err
	case "turn.failed":
		if err := object(errorRaw, field{"message", &messageRaw}); err != nil {
			d.fails("")
			return nil, err
		}
		said, err := text(messageRaw)
		d.fails(said)
		return nil, err
	case "error":
		said, err := text(messageRaw)
		if strings.HasPrefix(said, "Reconnecting...") {
			d.waiting = clip(said, maxDetail)
			return []Event{{Kind: EventRetry, Text: d.waiting}}, nil
		}
		d.fails(said)
		return []Event{{Kind: EventNotice, Text: clip(said, maxDetail)}}, err
	case "item.started", "item.updated", "item.completed":
		d.waiting = ""
		return d.item(kind, itemRaw)
	}
	return nil, unknownKind(kind)
}

func (d *codexDecoder) fails(said string) {
	d.finished, d.failed, d.waiting = false, true, ""
	d.message = clip(said, maxMessage)
	d.evidence = codexEvidenceOf(said)
}

// item reads one thing the agent did. Its message is prose; its reasoning and its tools' output are not; an error item
// is a notice, which may come with a success.
func (d *codexDecoder) item(kind string, raw []byte) ([]Event, error) {
	var idRaw, typeRaw, textRaw, messageRaw []byte
	err := object(raw, field{"id", &idRaw}, field{"type", &typeRaw}, field{"text", &textRaw}, field{"message", &messageRaw})
	id, err1 := text(idRaw)
	item, err2 := text(typeRaw)
	if errors.Join(err, err1, err2) != nil {
		return nil, errShape
	}
	id = clip(id, 128)
	completed := kind == "item.completed"
	switch item {
	case "agent_message", "assistant_message":
		if !completed {
			return nil, nil
		}
		prose, err := text(textRaw)
		if err != nil {
			return nil, err
		}
		return []Event{{Kind: EventMessage, Message: id, Text: prose}}, nil
	case "command_execution", "mcp_tool_call", "collab_tool_call":
		if kind == "item.updated" || !d.started.first(id) {
			return nil, nil
		}
		name, detail := codexTool(item, raw)
		return []Event{{Kind: EventTool, Name: name, Detail: detail}}, nil
	case "file_change", "web_search": // what they are about is known at the end
		if !completed {
			return nil, nil
		}
		name, detail := codexTool(item, raw)
		return []Event{{Kind: EventTool, Name: name, Detail: detail}}, nil
	case "error":
		said, err := text(messageRaw)
		if !completed || err != nil {
			return nil, err
		}
		return []Event{{Kind: EventNotice, Text: clip(said, maxDetail)}}, nil
	case "reasoning", "todo_list":
		return nil, nil
	}
	return nil, unknownKind("item", item)
}

// codexTool names a tool and says in one short line what it is called with.
func codexTool(item string, raw []byte) (name, detail string) {
	var commandRaw, serverRaw, toolRaw, queryRaw, changesRaw []byte
	if object(raw, field{"command", &commandRaw}, field{"server", &serverRaw}, field{"tool", &toolRaw},
		field{"query", &queryRaw}, field{"changes", &changesRaw}) != nil {
		return item, ""
	}
	str := func(raw []byte) string {
		s, _ := text(raw) // a detail of another type is no detail
		return clip(s, maxDetail)
	}
	switch item {
	case "command_execution":
		if detail = str(commandRaw); detail == "" {
			var words []string
			_ = elements(commandRaw, func(word []byte) error {
				words = append(words, str(word))
				if len(words) > maxDetail {
					return errShape
				}
				return nil
			})
			detail = clip(strings.Join(words, " "), maxDetail)
		}
		return "command", detail
	case "file_change":
		return item, codexChanges(changesRaw)
	case "web_search":
		return item, str(queryRaw)
	case "mcp_tool_call":
		return clip(str(serverRaw)+"/"+str(toolRaw), 60), ""
	}
	return item, str(toolRaw)
}

// codexChanges is the first changed path and the number of the others.
func codexChanges(raw []byte) string {
	first, others := "", -1
	_ = elements(raw, func(change []byte) error { // an odd change is counted all the same
		var pathRaw []byte
		if others++; others == 0 && object(change, field{"path", &pathRaw}) == nil {
			first, _ = text(pathRaw)
		}
		return nil
	})
	if first = clip(first, maxDetail-20); others > 0 {
		return fmt.Sprintf("%s and %d more", first, others)
	}
	return first
}

// codexUsage reads the usage of a thread: codex counts cached input as input.
func codexUsage(raw []byte) (Usage, error) {
	u, err := countUsage(raw, "input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
	u.Input = max(u.Input-u.CacheRead-u.CacheWrite, 0)
	return u, err
}

// ring remembers the latest of a number of names.
type ring struct {
	names [256]string
	next  int
}

// first reports whether the name is new, and remembers it. An empty name is always new.
func (r *ring) first(name string) bool {
	if name == "" {
		return true
	}
	for _, n := range r.names {
		if n == name {
			return false
		}
	}
	r.names[r.next] = name
	r.next = (r.next + 1) % len(r.names)
	return true
}
