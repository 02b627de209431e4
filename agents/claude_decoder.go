package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// claudeDecoder reads `claude -p --output-format stream-json`.
type claudeDecoder struct {
	stream
	message    string // the one the main agent writes
	usage      tally  // of the messages, for a process that ends without a result
	retry      claudeRetry
	apiError   string // of the latest message that claude made up to report an error
	rejected   int64  // when the rate limit that stopped it ends (Unix time)
	result     claudeResult
	structured json.RawMessage
}

// claudeRetry is the wait that claude is in; its zero value is none.
type claudeRetry struct {
	status int64
	reason string
}

const maxStructured = 1 << 20

func (d *claudeDecoder) Line(line []byte) []Event { return d.line(line, d.decode) }

func (d *claudeDecoder) decode(line []byte) ([]Event, error) {
	var kindRaw, subtypeRaw, sessionRaw, messageRaw, parentRaw, errorRaw []byte
	err := object(line, field{"type", &kindRaw}, field{"subtype", &subtypeRaw}, field{"session_id", &sessionRaw},
		field{"message", &messageRaw}, field{"parent_tool_use_id", &parentRaw}, field{"error", &errorRaw})
	if err != nil {
		return nil, err
	}
	kind, err1 := text(kindRaw)
	subtype, err2 := text(subtypeRaw)
	session, err3 := text(sessionRaw)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, errShape
	}
	switch kind {
	case "assistant":
		return d.assistant(messageRaw, errorRaw, parentRaw == nil)
	case "result":
		return d.ended(line, session)
	case "system":
		return d.system(line, subtype, session)
	case "rate_limit_event":
		return d.rateLimit(line)
	case "user", "stream_event", "tool_progress", "tool_use_summary", "auth_status", "prompt_suggestion",
		"control_request", "control_response", "control_cancel_request", "keep_alive":
		// Tool results, pieces of messages that come whole as well, and talk with a program that embeds claude.
		return nil, nil
	}
	return nil, unknownKind(kind)
}

func (d *claudeDecoder) system(line []byte, subtype, session string) ([]Event, error) {
	switch subtype {
	case "init":
		return d.begin(session)
	case "api_retry":
		return d.retrying(line)
	case "compact_boundary":
		return []Event{{Kind: EventNotice, Text: "the context was compacted"}}, nil
	case "status", "vcs_state_changed", "thinking_tokens", "ui_invalidate", "microcompact_boundary",
		"hook_started", "hook_progress", "hook_response", "task_started", "task_progress", "task_updated",
		"task_notification", "files_persisted", "local_command_output", "session_state_changed":
		return nil, nil
	}
	return nil, unknownKind("system", subtype)
}

func (d *claudeDecoder) retrying(line []byte) ([]Event, error) {
	var attemptRaw, mostRaw, statusRaw, reasonRaw []byte
	err := object(line, field{"attempt", &attemptRaw}, field{"max_retries", &mostRaw},
		field{"error_status", &statusRaw}, field{"error", &reasonRaw})
	attempt, err1 := count(attemptRaw)
	most, err2 := count(mostRaw)
	status, err3 := count(statusRaw)
	reason, err4 := text(reasonRaw)
	if errors.Join(err, err1, err2, err3, err4) != nil {
		return nil, errShape
	}
	d.retry = claudeRetry{status: status, reason: clip(reason, 60)}
	return []Event{{Kind: EventRetry, Text: fmt.Sprintf("retry %d of %d%s", attempt, most, d.retry.because())}}, nil
}

// because is " (429 rate_limit)", or "" when there is nothing to wait for.
func (r claudeRetry) because() string {
	switch {
	case r.status != 0:
		return fmt.Sprintf(" (%d %s)", r.status, r.reason)
	case r.reason != "":
		return " (" + r.reason + ")"
	}
	return ""
}

// rateLimit keeps when a limit ends that stopped claude; while it only warns there is nothing to do.
func (d *claudeDecoder) rateLimit(line []byte) ([]Event, error) {
	var infoRaw, statusRaw, resetsRaw []byte
	err := object(line, field{"rate_limit_info", &infoRaw})
	if err == nil && infoRaw != nil {
		err = object(infoRaw, field{"status", &statusRaw}, field{"resetsAt", &resetsRaw})
	}
	status, err1 := text(statusRaw)
	resets, err2 := count(resetsRaw)
	if errors.Join(err, err1, err2) != nil {
		return nil, errShape
	}
	if status == "allowed" || status == "" {
		return nil, nil
	}
	if status == "rejected" {
		d.rejected = max(resets, 1)
	}
	return []Event{{Kind: EventNotice, Text: "rate limit: " + clip(status, 60)}}, nil
}

// assistant reads one content block, or a few, of a message. Only the main agent's text is prose: not its thinking,
// not what a sub-agent writes, not what claude itself puts in to report an error of its service.
func (d *claudeDecoder) assistant(messageRaw, errorRaw []byte, main bool) ([]Event, error) {
	var idRaw, modelRaw, contentRaw, usageRaw []byte
	err := object(messageRaw, field{"id", &idRaw}, field{"model", &modelRaw}, field{"content", &contentRaw},
		field{"usage", &usageRaw})
	id, err1 := text(idRaw)
	model, err2 := text(modelRaw)
	if errors.Join(err, err1, err2) != nil {
		return nil, errShape
	}
	if model == "<synthetic>" {
		return d.synthetic(errorRaw, contentRaw)
	}
	d.retry = claudeRetry{}
	usage, usageErr := claudeUsage(usageRaw)
	d.usage.note(clip(id, 128), usage)

	var events []Event
	if main && (id == "" || id != d.message) {
		d.message = clip(id, 128)
		events = append(events, Event{Kind: EventMessage, Message: d.message})
	}
	err = elements(contentRaw, func(raw []byte) error {
		var err error
		events, err = d.block(events, raw, main)
		return err
	})
	return events, errors.Join(err, usageErr)
}

func (d *claudeDecoder) block(events []Event, raw []byte, main bool) ([]Event, error) {
	var kindRaw, textRaw, nameRaw, inputRaw []byte
	err := object(raw, field{"type", &kindRaw}, field{"text", &textRaw}, field{"name", &nameRaw}, field{"input", &inputRaw})
	if err != nil {
		return events, err
	}
	switch string(kindRaw) {
	case `"text"`:
		prose, err := text(textRaw)
		if err != nil || !main || prose == "" {
			return events, err
		}
		return append(events, Event{Kind: EventMessage, Message: d.message, Text: prose}), nil
	case `"tool_use"`, `"server_tool_use"`, `"mcp_tool_use"`:
		name, err := text(nameRaw)
		if err != nil {
			return events, err
		}
		return append(events, Event{Kind: EventTool, Name: clip(name, 60), Detail: toolDetail(inputRaw)}), nil
	case `"thinking"`, `"redacted_thinking"`, `"fallback"`:
		return events, nil
	}
	if bytes.HasSuffix(kindRaw, []byte(`_tool_result"`)) {
		return events, nil
	}
	return events, unknownKind("content", string(kindRaw[:min(len(kindRaw), 60)]))
}

// synthetic keeps the kind of error that claude reports in the guise of a message.
func (d *claudeDecoder) synthetic(errorRaw, contentRaw []byte) ([]Event, error) {
	reason, err := text(errorRaw)
	if err != nil {
		return nil, err
	}
	d.apiError = clip(reason, 60)
	var events []Event
	err = elements(contentRaw, func(raw []byte) error {
		var textRaw []byte
		if err := object(raw, field{"text", &textRaw}); err != nil {
			return err
		}
		said, err := text(textRaw)
		if said = clip(said, maxDetail); said != "" {
			events = append(events, Event{Kind: EventNotice, Text: said})
		}
		return err
	})
	return events, err
}

// toolDetail is what a tool is called with, in one short line: the first of a few telling arguments that is there.
func toolDetail(input []byte) string {
	keys := [...]string{"command", "file_path", "notebook_path", "path", "url", "query", "pattern", "description", "skill"}
	var raws [len(keys)][]byte
	fields := make([]field, len(keys))
	for i, key := range keys {
		fields[i] = field{key, &raws[i]}
	}
	if input == nil || object(input, fields...) != nil {
		return ""
	}
	for _, raw := range raws {
		if s, err := text(raw); err == nil && s != "" {
			return clip(s, maxDetail)
		}
	}
	return ""
}
