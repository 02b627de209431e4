package agents

// Finish sums the process up.
func (d *claudeDecoder) Finish(e Ending) Report {
	usage := d.result.usage
	if !d.result.seen {
		usage = d.usage.sum()
	}
	return Report{
		Session: d.session, Usage: usage, Failure: d.failure(e), Structured: d.structured, Unknown: d.unknown,
	}
}

// failure puts what claude reported before how it ended, and that before what is missing.
func (d *claudeDecoder) failure(e Ending) *Failure {
	const program = "claude"
	if f := notStarted(program, claudeMissing, e); f != nil {
		return f
	}
	if d.result.failed {
		return d.reported(e)
	}
	doing := d.retry.because()
	if doing != "" {
		doing = " while it waited for its model service" + doing
	}
	if f := killed(program, doing, e); f != nil {
		return f
	}
	switch {
	case !d.result.seen:
		return d.unfinished(e)
	case e.ExitCode != 0:
		return exited(program, e)
	}
	return nil
}

// reported is the failure in a result.
func (d *claudeDecoder) reported(e Ending) *Failure {
	r := d.result
	message := r.message
	if message == "" {
		message = "claude reported " + r.subtype
	}
	switch r.terminal {
	case "aborted_tools", "aborted_streaming": // claude catches SIGINT, says this and exits 0
		signal := signalOf(e)
		if signal == "" {
			signal = "SIGINT"
		}
		return fail(Killed, "claude was interrupted by %s", signal)
	case "prompt_too_long":
		return fail(BadRequest, "%s", message)
	}
	if r.subtype == "error_max_turns" {
		return fail(MaxTurns, "%s", message)
	}
	class := d.reportedClass()
	switch class {
	case Auth:
		return fail(class, "%s (%s)", clip(message, maxMessage/2), claudeLogin)
	case RateLimit:
		f := fail(class, "%s", message)
		f.ResetAt = reset(max(r.limitEnd, d.rejected))
		return f
	}
	return fail(class, "%s", message)
}

// reportedClass asks the most exact evidence first: the service's status, then the names claude gives errors.
func (d *claudeDecoder) reportedClass() Class {
	r := d.result
	if c := statusClass(r.status); c != "" {
		return c
	}
	for _, name := range []string{r.kind, r.cause, d.apiError} {
		if c := claudeErrorClass(name); c != "" {
			return c
		}
	}
	if r.limitEnd != 0 || d.rejected != 0 {
		return RateLimit
	}
	return OtherFailure
}

// claudeErrorClass knows the error names of the service's API and of claude itself; "" for others.
func claudeErrorClass(name string) Class {
	switch name {
	case "authentication_error", "authentication_failed", "permission_error", "billing_error", "oauth_org_not_allowed":
		return Auth
	case "rate_limit_error", "rate_limit":
		return RateLimit
	case "overloaded_error", "overloaded", "api_error", "server_error", "timeout_error", "connection_failed":
		return Overload
	case "not_found_error", "model_not_found":
		return ModelNotFound
	case "invalid_request_error", "invalid_request", "request_too_large":
		return BadRequest
	}
	return ""
}

// unfinished is the failure of a process that ended without a result. Only messages of claude's own about its command
// line are read from stderr, and only when nothing was printed, that is, before any agent was at work.
func (d *claudeDecoder) unfinished(e Ending) *Failure {
	if f := missing("claude", claudeMissing, d.lines, e); f != nil {
		return f
	}
	if d.lines == 0 && e.ExitCode != 0 {
		if said := firstLineWith(e.StderrTail, "cannot be used with root/sudo privileges"); said != "" {
			return fail(BadRequest, "%s (run as another user, or pass --agent-env IS_SANDBOX=1 inside a sandbox)", said)
		}
		for _, refusal := range []string{"error: unknown option", "error: option '", "requires --verbose"} {
			if said := firstLineWith(e.StderrTail, refusal); said != "" {
				return fail(BadRequest, "claude: %s (see --agent-args)", said)
			}
		}
	}
	if doing := d.retry.because(); doing != "" {
		class := statusClass(d.retry.status)
		if class == "" {
			class = claudeErrorClass(d.retry.reason)
		}
		if class == "" {
			class = Overload // the service never answered
		}
		return fail(class, "claude ended (status %d) while it waited for its model service%s", e.ExitCode, doing)
	}
	if e.ExitCode != 0 {
		return exited("claude", e)
	}
	return fail(OtherFailure, "claude ended without a result")
}
