package agents

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// claudeResult is what claude said when it ended. It says so once a turn; the last one decides, their usage adds up.
type claudeResult struct {
	seen     bool
	failed   bool
	subtype  string // "success" also for errors of the model service
	terminal string // why the turn ended
	status   int64  // HTTP status of the model service; 0: none
	kind     string // of the service's error
	cause    string // when the service was not reached
	message  string
	limitEnd int64 // Unix time from "…usage limit reached|<time>"
	usage    Usage
}

func (d *claudeDecoder) ended(line []byte, session string) ([]Event, error) {
	var raw struct {
		isError, subtype, terminal, status, kind, cause, result, errors, usage, models, cost, structured []byte
	}
	err := object(line, field{"is_error", &raw.isError}, field{"subtype", &raw.subtype},
		field{"terminal_reason", &raw.terminal}, field{"api_error_status", &raw.status},
		field{"api_error_type", &raw.kind}, field{"api_error", &raw.cause}, field{"result", &raw.result},
		field{"errors", &raw.errors}, field{"usage", &raw.usage},
		field{"model_usage_since_last_result", &raw.models}, field{"total_cost_usd", &raw.cost},
		field{"structured_output", &raw.structured})
	if err != nil {
		return nil, err
	}
	var flaws []error
	str := func(raw []byte) string {
		s, err := text(raw)
		flaws = append(flaws, err)
		return s
	}
	isError, err1 := truth(raw.isError)
	status, err2 := count(raw.status)
	usage, err3 := claudeResultUsage(raw.usage, raw.models, raw.cost, d.result.usage.CostUSD)
	flaws = append(flaws, err1, err2, err3)

	r := claudeResult{
		seen: true, subtype: clip(str(raw.subtype), 60), terminal: clip(str(raw.terminal), 60), status: status,
		kind: clip(str(raw.kind), 60), cause: clip(str(raw.cause), 60), usage: d.result.usage.Add(usage),
	}
	// A result that cannot be read is no success.
	r.failed = isError || err1 != nil || r.subtype != "success"
	if r.failed {
		said := str(raw.result)
		r.limitEnd = limitEnd(said)
		r.message = clip(said, maxMessage)
		flaws = append(flaws, elements(raw.errors, func(raw []byte) error {
			if r.message == "" {
				r.message = clip(str(raw), maxMessage)
			}
			return nil
		}))
	}
	if len(raw.structured) <= maxStructured {
		d.structured = bytes.Clone(raw.structured)
	}
	d.result = r
	var events []Event
	if !r.failed { // a session that could not be resumed is named here too
		events, err = d.begin(session)
		flaws = append(flaws, err)
	}
	return events, errors.Join(flaws...)
}

// claudeUsage reads a usage object of the model service's API.
func claudeUsage(raw []byte) (Usage, error) {
	return countUsage(raw, "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
}

// claudeResultUsage is what was used since the result before. Claude's account by model includes sub-agents and small
// helper models, and is by itself of this process; total_cost_usd (the only one older versions have) also covers a
// session resumed from and earlier results, whose cost is taken off.
func claudeResultUsage(usageRaw, modelsRaw, costRaw []byte, before float64) (Usage, error) {
	var sum Usage
	models := 0
	err := members(modelsRaw, func(raw []byte) error {
		var costRaw []byte
		u, err := countUsage(raw, "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
		if err == nil {
			err = object(raw, field{"costUSD", &costRaw})
		}
		if err != nil {
			return err
		}
		if u.CostUSD, err = amount(costRaw); err == nil {
			models, sum = models+1, sum.Add(u)
		}
		return err
	})
	if models > 0 {
		return sum, err
	}
	usage, err1 := claudeUsage(usageRaw)
	cost, err2 := amount(costRaw)
	usage.CostUSD = max(cost-before, 0)
	return usage, errors.Join(err, err1, err2)
}

// countUsage reads four counts under the names that one CLI gives them. An absent object is no usage.
func countUsage(raw []byte, input, output, cacheRead, cacheWrite string) (Usage, error) {
	if raw == nil {
		return Usage{}, nil
	}
	var in, out, read, write []byte
	if err := object(raw, field{input, &in}, field{output, &out}, field{cacheRead, &read}, field{cacheWrite, &write}); err != nil {
		return Usage{}, err
	}
	var u Usage
	var err [4]error
	u.Input, err[0] = count(in)
	u.Output, err[1] = count(out)
	u.CacheRead, err[2] = count(read)
	u.CacheWrite, err[3] = count(write)
	if errors.Join(err[:]...) != nil {
		return u, errShape
	}
	return u, nil
}

// limitEnd finds the Unix time at the end of "…usage limit reached|1733000000"; 0 when there is none.
func limitEnd(said string) int64 {
	head, end, ok := strings.Cut(said, "|")
	if !ok || !strings.HasSuffix(head, "limit reached") {
		return 0
	}
	unix, err := strconv.ParseInt(strings.TrimSpace(end), 10, 64)
	if err != nil || unix < 0 {
		return 0
	}
	return unix
}
