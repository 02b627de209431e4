package agents

import (
	"strconv"
	"strings"
)

// Finish sums the process up.
func (d *codexDecoder) Finish(e Ending) Report {
	return Report{Session: d.session, Usage: d.usage, SessionTotal: true, Failure: d.failure(e), Unknown: d.unknown}
}

// failure puts what codex reported before how it ended, and that before what is missing.
func (d *codexDecoder) failure(e Ending) *Failure {
	const program = "codex"
	if f := notStarted(program, codexMissing, e); f != nil {
		return f
	}
	if d.failed {
		return d.reported()
	}
	doing := ""
	if d.waiting != "" {
		doing = " while it waited for its model service: " + d.waiting
	}
	if f := killed(program, doing, e); f != nil {
		return f
	}
	switch {
	case !d.finished:
		return d.unfinished(e, doing)
	case e.ExitCode != 0:
		return exited(program, e)
	}
	return nil
}

func (d *codexDecoder) reported() *Failure {
	message := d.message
	if d.evidence.message != "" {
		message = d.evidence.message
	}
	if message == "" {
		message = "codex reported a failed turn"
	}
	class := d.evidence.class()
	if class == Auth {
		return fail(class, "%s (%s)", clip(message, maxMessage/2), codexLogin)
	}
	f := fail(class, "%s", message)
	if class == RateLimit {
		f.ResetAt = reset(d.evidence.resets)
	}
	return f
}

// unfinished is the failure of a process whose turn neither completed nor failed. Only messages of codex's own about
// its command line and configuration are read from stderr, and only when nothing was printed.
func (d *codexDecoder) unfinished(e Ending, doing string) *Failure {
	if f := missing("codex", codexMissing, d.lines, e); f != nil {
		return f
	}
	if d.lines == 0 && e.ExitCode != 0 {
		for _, refusal := range []string{"error: unexpected argument", "error: invalid value", "Error loading config.toml"} {
			if said := firstLineWith(e.StderrTail, refusal); said != "" {
				return fail(BadRequest, "codex: %s (see --agent-args and codex's config.toml)", said)
			}
		}
	}
	if doing != "" {
		class := codexEvidenceOf(d.waiting).class()
		if class == OtherFailure {
			class = Overload // the service was never reached
		}
		return fail(class, "codex ended (status %d)%s", e.ExitCode, doing)
	}
	if e.ExitCode != 0 {
		return exited("codex", e)
	}
	return fail(OtherFailure, "codex ended without a completed turn")
}

// codexEvidence is what the message of an error event tells. Codex has no fields for it: the message is either its own
// fixed text, with the HTTP status where there was one, or the service's JSON as it came.
type codexEvidence struct {
	text    string // the fixed text; never what a model wrote
	status  int64
	code    string // the service's
	message string // the service's
	resets  int64  // Unix time
}

func codexEvidenceOf(said string) codexEvidence {
	said = strings.TrimSpace(said)
	ev := codexEvidence{text: clip(said, maxMessage)}
	if strings.HasPrefix(said, "{") {
		ev.body([]byte(said))
		return ev
	}
	for _, before := range []string{"unexpected status ", "last status: "} {
		if _, after, ok := strings.Cut(ev.text, before); ok && len(after) >= 3 {
			ev.status, _ = strconv.ParseInt(after[:3], 10, 64) // no number: no status
			break
		}
	}
	return ev
}

// body reads the service's JSON. Codex shows it bare only when the service answered 400.
func (ev *codexEvidence) body(said []byte) {
	var errorRaw, detailRaw, codeRaw, typeRaw, messageRaw, resetsRaw []byte
	if object(said, field{"error", &errorRaw}, field{"detail", &detailRaw}) != nil {
		return
	}
	ev.status = 400
	str := func(raw []byte, limit int) string {
		s, _ := text(raw) // a code that is a number is no known code
		return clip(s, limit)
	}
	ev.message = str(detailRaw, maxMessage)
	if object(errorRaw, field{"code", &codeRaw}, field{"type", &typeRaw}, field{"message", &messageRaw},
		field{"resets_at", &resetsRaw}) != nil {
		return
	}
	if ev.code = str(codeRaw, 60); ev.code == "" {
		ev.code = str(typeRaw, 60)
	}
	if said := str(messageRaw, maxMessage); said != "" {
		ev.message = said
	}
	ev.resets, _ = count(resetsRaw)
}

func (ev codexEvidence) class() Class {
	if c := codexCodeClass(ev.code); c != "" {
		return c
	}
	if c := statusClass(ev.status); c != "" {
		return c
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
		{"Connection failed", Overload},
		{"Quota exceeded", Auth},
		{"Your workspace is out of credits", Auth},
		{"Missing environment variable", Auth},
		{"Not logged in", Auth},
		{"Codex ran out of room in the model's context window", BadRequest},
	} {
		if strings.HasPrefix(ev.text, known.text) {
			return known.class
		}
	}
	return OtherFailure
}

// codexCodeClass knows the error codes of the service's API; "" for others.
func codexCodeClass(code string) Class {
	switch code {
	case "invalid_api_key", "insufficient_quota", "billing_hard_limit_reached", "unauthorized", "usage_not_included":
		return Auth
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
