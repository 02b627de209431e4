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

// Reason is the reason of a refusal. Other values may be added.
type Reason string

const (
	NotAllowed         Reason = "not-allowed"     // no rule allows this host and port
	AddressRefused     Reason = "address-refused" // the name resolves only to non-public addresses
	NotResolved        Reason = "not-resolved"    // the name could not be resolved
	NotConnected       Reason = "not-connected"   // the connection to the service failed
	WrongHost          Reason = "other-name"      // a TLS or HTTP request for a host other than the connected one
	NotTLS             Reason = "not-tls"         // port 443 without TLS, or TLS without a server name
	Malformed          Reason = "malformed"       // not a valid request
	TooManyConnections Reason = "too-many"        // too many open connections
	TooManyBytes       Reason = "too-much"        // too many bytes of the run, or of one request
	EndpointPath       Reason = "endpoint-path"   // a method or path that the endpoint does not offer
	Unreadable         Reason = "unreadable"      // an endpoint's answer cannot be searched for the credential
	ServerTool         Reason = "server-tool"     // a tool with which a model's service would access the internet
	NoCredential       Reason = "no-credential"   // the endpoint's credential is not available
	Budget             Reason = "budget"          // the endpoint's Admit refused the request
	OtherModel         Reason = "other-model"     // the same, with ErrOtherModel
)

// Event is a refusal. All fields may be shown to people: Host is a valid host or endpoint name, or empty.
type Event struct {
	Time   time.Time `json:"time"`
	Reason Reason    `json:"reason"`
	Host   string    `json:"host,omitempty"`
	Port   int       `json:"port,omitempty"`
	Detail string    `json:"detail,omitempty"` // for people
	// Count is the number of these refusals so far. Events are sent for the 1st, 10th, 100th, … refusal.
	Count int `json:"count"`
}

// maxRefusals is the number of distinct refusals that are listed; others are only counted.
const maxRefusals = 200

// refusal identifies a kind of refusal.
type refusal struct {
	reason Reason
	host   string
	port   int
}

// record counts refusals and reports some of them.
type record struct {
	observe func(Event)
	log     *slog.Logger

	mu       sync.Mutex
	seen     map[refusal]*Event // guarded by mu
	overflow int                // guarded by mu; refusals beyond maxRefusals
}

// add counts one refusal. It calls the observer under the lock, so that events arrive one at a time and in order.
func (r *record) add(k refusal, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.seen[k]
	if e == nil {
		if len(r.seen) >= maxRefusals {
			r.overflow++
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

// Refusals returns the refusals so far, the most frequent first, and the number of refusals that are not in the bounded
// list.
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
	return list, r.overflow
}

func powerOfTen(n int) bool { return strings.TrimRight(strconv.Itoa(n), "0") == "1" }
