package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/pattern"
)

const (
	maxRefusal = 64 << 10 // bytes of a refusal that are examined
	maxError   = 2 << 10  // bytes of an answer's end that may be an error
)

// unavailable matches the error with which a service ends an answer that it has begun. The text of a model cannot match: its quotes
// are escaped.
var unavailable = pattern.Lazy(`"(?:type|code)": ?"(?:overloaded_error|rate_limit_error|api_error|timeout_error|rate_limit_exceeded|` +
	`usage_limit_reached|server_error|server_is_overloaded|slow_down|insufficient_quota)"`)

// refused is a refusal of requests for a model.
type refused struct {
	agent, model string
	end          time.Time // of the limit; zero: not stated
	at           int       // number of requests that the meter had admitted
	unreached    string    // why the service could not be reached, with its address; empty: it has refused the request
}

// noteRefusal records that the service has refused a request, or broken off its answer, and the end of its limit; zero: not stated.
func (m *Meter) noteRefusal(x *exchange, end time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := refused{x.from.name(), x.model, end, m.admitted, x.unreached}
	i := slices.IndexFunc(m.refusals, func(o refused) bool { return o.agent == r.agent && o.model == r.model })
	if i < 0 {
		m.refusals = append(m.refusals, r)
		return
	}
	if o := m.refusals[i]; o.end.After(r.end) {
		r.end = o.end
	}
	m.refusals[i] = r
}

// noteSuccess forgets refusals that the answer to a later request for the same model disproves.
func (m *Meter) noteSuccess(x *exchange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals = slices.DeleteFunc(m.refusals, func(r refused) bool {
		return r.agent == x.from.name() && r.model == x.model && r.at < x.number
	})
}

// concerns reports whether the refusal is one of the agent's main model: another model may have a limit of its own, and the agent
// could ask for any. The caller holds mu.
func (m *Meter) concerns(r refused, by agents.Link) bool {
	name := ""
	if by.Agent != nil {
		name = by.Agent.Name()
	}
	main := cmp.Or(m.mains[mainOf{name, by.Options.Model}], m.mains[mainOf{name, ""}])
	return r.agent == name && (r.model == "" || main == "" || agents.SameModel(r.model, main)) // without a main one there were only helpers
}

// refusal is a service's refusal of a request. Agents report them, too, but what an agent prints may come from a command that it runs.
type refusal struct {
	class  agents.Class
	header http.Header
	body   []byte
}

func (r *refusal) read(p []byte) {
	r.body = append(r.body, p[:min(len(p), maxRefusal-len(r.body))]...)
}

// limit reports whether the agent is unavailable according to the refusal, and returns the end of its rate limit; zero: not stated.
func (r *refusal) limit(now time.Time) (end time.Time, unavailable bool) {
	if r.class == agents.RateLimit {
		end = r.end(now)
	}
	return end, r.class.Unavailable() || agents.IsNoCreditMessage(string(r.body))
}

// end returns the latest end that a refusal states: in Retry-After, in Anthropic's header, or in the body of OpenAI's.
func (r *refusal) end(now time.Time) (end time.Time) {
	var body struct {
		Error struct {
			ResetsAt json.Number `json:"resets_at"`
		}
	}
	_ = json.Unmarshal(r.body, &body)
	for _, unix := range []string{r.header.Get("Anthropic-Ratelimit-Unified-Reset"), body.Error.ResetsAt.String()} {
		if n, err := strconv.ParseInt(unix, 10, 64); err == nil && agents.ResetTime(n).After(end) {
			end = agents.ResetTime(n)
		}
	}
	const most = 1 << 24
	if n, err := strconv.ParseInt(r.header.Get("Retry-After"), 10, 64); err == nil && n > 0 && n < most {
		if at := now.Add(time.Duration(n) * time.Second); at.After(end) {
			end = at
		}
	}
	return end
}
