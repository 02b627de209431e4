package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Action is the reaction to a failure.
type Action string

const (
	Wait  Action = "wait"  // wait until a known time, then continue
	Retry Action = "retry" // try again: the failure may be temporary
	Skip  Action = "skip"  // skip this issue; others may succeed
	Stop  Action = "stop"  // end the sweep: a person has to change something first
)

// Reason is a kind of failure, as text for people.
type Reason string

const (
	TokenRefused   Reason = "the token is refused"
	WriteForbidden Reason = "the token may not do this"
	ReadForbidden  Reason = "the token may not read this"
	Invisible      Reason = "not found, or the token may not see it"
	SwitchedOff    Reason = "it was deleted, or is switched off for this project"
	Moved          Reason = "the project has moved"
	Diverted       Reason = "the answer redirects to an address outside of the API"
	Archived       Reason = "the project is archived"
	Invalid        Reason = "the forge does not accept it"
	Blocked        Reason = "the project is blocked"
	TooMany        Reason = "too many requests"
	ServerFault    Reason = "the forge has a fault"
	Refused        Reason = "the forge refuses it"
	Unexpected     Reason = "the answer was not expected"
	Locked         Reason = "comments are closed there"
	Untrusted      Reason = "the certificate is not trusted"
	NoToken        Reason = "there is no token"
	NoConnection   Reason = "no connection"
	NoAnswer       Reason = "no usable answer"
	Unreadable     Reason = "the answer does not have the expected form"
)

// Failure is one failed request to a forge. Its message is one line. It never contains a secret.
type Failure struct {
	Method string
	Path   string
	Status int // 0: no answer
	Reason Reason
	Detail string // replaces the text of Reason if set
	Hint   string // action for a person; may be empty
	Action Action
	Until  time.Time // for Action Wait
	// Uncertain is set if the write may have taken effect nevertheless.
	Uncertain bool
	Err       error // cause; may be nil
}

func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", f.Method, f.Path)
	if f.Status != 0 {
		fmt.Fprintf(&b, "%d ", f.Status)
	}
	b.WriteString(cmp.Or(f.Detail, string(f.Reason)))
	if f.Hint != "" {
		b.WriteString("; " + f.Hint)
	}
	return b.String()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// HintMoved is the hint for a project that has moved.
const HintMoved = "update the remote's address: git remote set-url"

// classifyStatus maps the status of an unsuccessful answer to its meaning.
func classifyStatus(status int, write bool) (Reason, Action, string) {
	switch status {
	case http.StatusUnauthorized:
		return TokenRefused, Stop, "use a valid one: it may have expired or been revoked"
	case http.StatusForbidden:
		if write {
			return WriteForbidden, Stop, "give it write permission"
		}
		return ReadForbidden, Stop, "give it read permission"
	case http.StatusNotFound:
		return Invisible, Skip, "check the project's name and the token's access"
	case http.StatusGone:
		return SwitchedOff, Skip, "switch it on in the project's settings"
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return Moved, Stop, HintMoved
	case http.StatusUnprocessableEntity, http.StatusBadRequest, http.StatusConflict:
		return Invalid, Skip, ""
	case http.StatusUnavailableForLegalReasons:
		return Blocked, Stop, ""
	case http.StatusTooManyRequests:
		return TooMany, Wait, ""
	case http.StatusRequestTimeout:
		return ServerFault, Retry, ""
	}
	switch {
	case status >= 500:
		return ServerFault, Retry, ""
	case status >= 400:
		return Refused, Skip, ""
	}
	return Unexpected, Stop, "check the forge's address"
}

// refusal returns the Failure for an unsuccessful answer. Message is the forge's text, which is not trusted.
func refusal(resp *http.Response, message string) *Failure {
	f := failure(resp.Request)
	write := f.Uncertain
	f.Status = resp.StatusCode
	f.Reason, f.Action, f.Hint = classifyStatus(resp.StatusCode, write)
	switch lower := strings.ToLower(message); resp.StatusCode {
	case http.StatusForbidden:
		if strings.Contains(lower, "is locked") || strings.Contains(lower, "commenting is disabled") {
			f.Reason, f.Action, f.Hint = Locked, Skip, "unlock it, or continue in a new issue"
		} else if strings.Contains(lower, "archived") {
			f.Reason, f.Hint = Archived, "unarchive it in its settings"
		}
	case http.StatusMethodNotAllowed:
		if strings.Contains(lower, "moved project") { // GitLab
			f.Reason, f.Action, f.Hint = Moved, Stop, HintMoved
		}
	}
	f.Uncertain = write && f.Action == Retry
	if message = oneLine(message); message != "" {
		f.Detail = string(f.Reason) + " (" + message + ")"
	}
	return f
}

// failure returns a new Failure for a request, which may be nil.
func failure(r *http.Request) *Failure {
	if r == nil {
		return &Failure{}
	}
	return &Failure{Method: r.Method, Path: r.URL.Path, Uncertain: !isRead(r)}
}

// Explain converts an SDK's error: to *tracker.UnavailableError if it may be temporary, to *tracker.RefusedError if the
// sweep must stop, otherwise to a *Failure. resp may be nil; message is the forge's text. If ctx has ended, Explain returns
// its cause. It returns nil for nil.
func Explain(ctx context.Context, resp *http.Response, message string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f, known := errors.AsType[*Failure](err)
	switch {
	case known:
	case resp != nil && resp.StatusCode >= 300:
		f = refusal(resp, message)
	default: // a success answer that the SDK could not read
		f = &Failure{}
		if resp != nil {
			f = failure(resp.Request)
			f.Status = resp.StatusCode
		}
		f.Reason, f.Action, f.Err = Unreadable, Retry, err
		f.Detail = string(Unreadable) + " (" + oneLine(err.Error()) + ")"
	}
	switch f.Action {
	case Wait, Retry:
		return &tracker.UnavailableError{Until: f.Until, Err: f}
	case Stop:
		return &tracker.RefusedError{Err: f}
	}
	return f
}

// Status returns the HTTP status of a failure, 0 if there is none.
func Status(err error) int {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Status
	}
	return 0
}

// Missing reports whether the answer was "not found" or "gone".
func Missing(err error) bool {
	switch Status(err) {
	case http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// IsMoved reports whether the answer was that the issue or project has moved.
func IsMoved(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Reason == Moved
}

// Uncertain reports whether a failed write may have taken effect nevertheless.
func Uncertain(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Uncertain
}

// Skippable reports whether the failure concerns only this issue.
func Skippable(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Action == Skip
}

// IsMalformed reports whether all tries got JSON of an unexpected form.
func IsMalformed(err error) bool { return errors.Is(err, errForm) }

// noAnswerFailure returns the Failure for a request without a usable answer.
func noAnswerFailure(r *http.Request, err error) error {
	f := failure(r)
	f.Action, f.Err, f.Reason = Retry, err, NoAnswer
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &cert):
		f.Reason, f.Action, f.Uncertain = Untrusted, Stop, false
		f.Detail = "the certificate of " + r.URL.Host + " is not trusted (" + oneLine(cert.Err.Error()) + ")"
		f.Hint = "trust the authority that signed it, or set this machine's clock"
	case errors.As(err, &dns):
		f.Reason, f.Uncertain = NoConnection, false
		f.Detail, f.Hint = "the name "+dns.Name+" cannot be resolved", "check the network and the address"
	case errors.Is(err, errTooLong):
		f.Detail, f.Action = err.Error(), Skip
	case errors.Is(err, errTimeout), errors.Is(err, errMalformed):
		f.Detail = err.Error()
	case errors.Is(err, errForm):
		f.Reason, f.Detail = Unreadable, err.Error()
		f.Hint = "if it stays so, check that the address is the API of a supported version"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		f.Detail = "the answer is incomplete"
	case errors.As(err, &op) && op.Op == "dial":
		f.Reason, f.Uncertain = NoConnection, false
		f.Detail = "no connection to " + r.URL.Host + " (" + oneLine(op.Err.Error()) + ")"
	default:
		f.Detail = "the connection broke (" + oneLine(err.Error()) + ")"
	}
	return f
}

// redirectFailure returns the Failure for a redirect out of the API, or to the same address. It omits the query, which may hold secrets.
func redirectFailure(r *http.Request, to *url.URL) error {
	f := failure(r)
	f.Reason, f.Action, f.Uncertain = Diverted, Stop, false
	f.Detail = string(Diverted) + ", to " + oneLine(to.Scheme+"://"+to.Host+to.EscapedPath())
	f.Hint = "check the forge's address, and whether a login page or a proxy is in front of it"
	return f
}

func rateFailure(r *http.Request, until time.Time) error {
	return &Failure{Method: r.Method, Path: r.URL.Path, Action: Wait, Until: until, Reason: TooMany,
		Detail: "the forge's rate limit is used up until " + until.Local().Format(time.DateTime)}
}

func tokenFailure(r *http.Request, err error) error {
	if f, ok := errors.AsType[*Failure](err); ok { // the token source made a request of its own
		return f
	}
	return &Failure{Method: r.Method, Path: r.URL.Path, Action: Stop, Reason: NoToken, Err: err, Detail: oneLine(err.Error())}
}

// oneLine shortens external text for one line of an error.
func oneLine(s string) string { return tracker.Line(s, 200) }
