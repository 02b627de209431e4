package egress

import (
	"cmp"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Reason is why something was refused. The set is open.
type Reason string

const (
	NotAllowed     Reason = "not-allowed"     // no rule has this host and port
	AddressRefused Reason = "address-refused" // the name leads to addresses that are not the internet's
	NotResolved    Reason = "not-resolved"    // the name has no address
	NotConnected   Reason = "not-connected"   // nothing answers at the address
	OtherName      Reason = "other-name"      // a TLS or HTTP request for another host than was connected to
	NotTLS         Reason = "not-tls"         // port 443 without TLS, or TLS without a name
	Malformed      Reason = "malformed"       // not a request
	TooMany        Reason = "too-many"        // connections open at once
	TooMuch        Reason = "too-much"        // bytes of the run, or of one request
	EndpointPath   Reason = "endpoint-path"   // a method or path the endpoint does not offer
	Unreadable     Reason = "unreadable"      // an endpoint's answer that cannot be searched for the credential
	ServerTool     Reason = "server-tool"     // a model's service would reach the internet itself
	NoCredential   Reason = "no-credential"   // the endpoint's credential is not available
	Budget         Reason = "budget"          // the endpoint's Admit has refused
)

// Event is a refusal. All of it may be shown: Host is a valid host or endpoint name, or empty.
type Event struct {
	Time   time.Time `json:"time"`
	Reason Reason    `json:"reason"`
	Host   string    `json:"host,omitempty"`
	Port   int       `json:"port,omitempty"`
	Detail string    `json:"detail,omitempty"` // a few words for people
	// Count is how often this has happened so far. An event comes at the 1st, 10th, 100th, … time.
	Count int `json:"count"`
}

// maxRefusals is how many different refusals are listed; more are only counted.
const maxRefusals = 200

// refusal identifies a refusal.
type refusal struct {
	reason Reason
	host   string
	port   int
}

// record counts refusals and reports some of them.
type record struct {
	observe func(Event)
	log     *slog.Logger

	mu    sync.Mutex
	seen  map[refusal]*Event // guarded by mu
	other int                // guarded by mu; refusals beyond maxRefusals
}

// add counts one refusal. The observer runs inside the lock, so that events come one at a time and in order.
func (r *record) add(k refusal, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.seen[k]
	if e == nil {
		if len(r.seen) >= maxRefusals {
			r.other++
			return
		}
		e = &Event{Reason: k.reason, Host: k.host, Port: k.port}
		r.seen[k] = e
	}
	e.Time, e.Detail = time.Now(), detail
	e.Count++
	if !powerOfTen(e.Count) {
		return
	}
	r.log.Info("egress refused", "reason", string(e.Reason), "host", e.Host, "port", e.Port, "detail", e.Detail, "count", e.Count)
	if r.observe != nil {
		r.observe(*e)
	}
}

// Refusals lists what was refused so far, the most frequent first, and how many refusals are not in the list because it is
// bounded.
func (p *Proxy) Refusals() (list []Event, more int) {
	r := &p.record
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.seen {
		list = append(list, *e)
	}
	slices.SortFunc(list, func(a, b Event) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Reason, b.Reason))
	})
	return list, r.other
}

func powerOfTen(n int) bool { return strings.TrimRight(strconv.Itoa(n), "0") == "1" }
