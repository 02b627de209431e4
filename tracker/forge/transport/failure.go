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

// Action is what to do about a failure.
type Action string

const (
	Wait  Action = "wait"  // until a known time, then go on
	Retry Action = "retry" // it may pass by itself
	Skip  Action = "skip"  // this issue; others may work
	Stop  Action = "stop"  // the sweep: a person has to change something first
)

// Reason is a kind of failure, in words.
type Reason string

const (
	TokenRefused   Reason = "the token is refused"
	WriteForbidden Reason = "the token may not do this"
	ReadForbidden  Reason = "the token may not read this"
	Invisible      Reason = "not found, or the token may not see it"
	SwitchedOff    Reason = "it was deleted, or is switched off for this project"
	Moved          Reason = "the project has moved"
	Diverted       Reason = "the answer leads out of the API"
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

// Failure is one thing that went wrong between ralph and a forge, in one line. It never holds a secret.
type Failure struct {
	Method string
	Path   string
	Status int // 0: there was no answer
	Reason Reason
	Detail string // in place of the reason's own words where there are better ones
	Hint   string // what a person can do; may be empty
	Action Action
	Until  time.Time // for Wait
	// Uncertain says that a write may have happened all the same.
	Uncertain bool
	Err       error // the cause, may be nil
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

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// HintMoved is what to do about a project that is elsewhere.
const HintMoved = "update the remote's address: git remote set-url"

// judge is the table: the meaning of an answer that is no success.
func judge(status int, write bool) (Reason, Action, string) {
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

// Refusal judges an answer that is no success. Message is the forge's text, which is not trusted.
func Refusal(resp *http.Response, message string) *Failure {
	f := failure(resp.Request)
	write := f.Uncertain
	f.Status = resp.StatusCode
	f.Reason, f.Action, f.Hint = judge(resp.StatusCode, write)
	switch lower := strings.ToLower(message); resp.StatusCode {
	case http.StatusForbidden:
		if strings.Contains(lower, "is locked") || strings.Contains(lower, "commenting is disabled") {
			f.Reason, f.Action, f.Hint = Locked, Skip, "unlock it, or continue in a new issue"
		} else if strings.Contains(lower, "archived") {
			f.Reason, f.Hint = Archived, "unarchive it in its settings"
		}
	case http.StatusMethodNotAllowed:
		if strings.Contains(lower, "moved project") { // GitLab's
			f.Reason, f.Action, f.Hint = Moved, Stop, HintMoved
		}
	}
	f.Uncertain = write && f.Action == Retry
	if message = oneLine(message); message != "" {
		f.Detail = string(f.Reason) + " (" + message + ")"
	}
	return f
}

// failure starts the failure of a request, which may be nil.
func failure(r *http.Request) *Failure {
	if r == nil {
		return &Failure{}
	}
	return &Failure{Method: r.Method, Path: r.URL.Path, Uncertain: !reads(r)}
}

// Explain turns an SDK's error into the seam's: *tracker.UnavailableError when it may pass, *tracker.RefusedError when
// the sweep must stop, else a *Failure. Resp may be nil, message is the forge's text. The cause of an ended ctx stays
// as it is, and nil stays nil.
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
		f = Refusal(resp, message)
	default: // a success that the SDK could not read
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

// Status is the HTTP status behind an error, 0 when there is none.
func Status(err error) int {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Status
	}
	return 0
}

// Missing reports an answer that says there is no such thing, or no longer.
func Missing(err error) bool {
	switch Status(err) {
	case http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// Elsewhere reports an answer that says the thing has moved, or its project.
func Elsewhere(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Reason == Moved
}

// Uncertain reports that a write may have happened although it gave this error.
func Uncertain(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Uncertain
}

// Skippable reports a refusal of this one thing.
func Skippable(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Action == Skip
}

// Misshapen reports an answer that stayed JSON of another form than expected, however often it was requested.
func Misshapen(err error) bool { return errors.Is(err, errForm) }

// broken judges a request that got no usable answer.
func broken(r *http.Request, err error) error {
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
		f.Detail = "the answer was cut"
	case errors.As(err, &op) && op.Op == "dial":
		f.Reason, f.Uncertain = NoConnection, false
		f.Detail = "no connection to " + r.URL.Host + " (" + oneLine(op.Err.Error()) + ")"
	default:
		f.Detail = "the connection broke (" + oneLine(err.Error()) + ")"
	}
	return f
}

// diverted judges an answer that leads to an address which is none of the API's, or to itself. A query may hold secrets.
func diverted(r *http.Request, to *url.URL) error {
	f := failure(r)
	f.Reason, f.Action, f.Uncertain = Diverted, Stop, false
	f.Detail = string(Diverted) + ", to " + oneLine(to.Scheme+"://"+to.Host+to.EscapedPath())
	f.Hint = "check the forge's address, and whether a login page or a proxy stands before it"
	return f
}

func rateFailure(r *http.Request, until time.Time) error {
	return &Failure{Method: r.Method, Path: r.URL.Path, Action: Wait, Until: until, Reason: TooMany,
		Detail: "the forge's rate limit is used up until " + until.Local().Format(time.DateTime)}
}

func tokenFailure(r *http.Request, err error) error {
	if f, ok := errors.AsType[*Failure](err); ok { // asking for the token was itself a request
		return f
	}
	return &Failure{Method: r.Method, Path: r.URL.Path, Action: Stop, Reason: NoToken, Err: err, Detail: oneLine(err.Error())}
}

// oneLine makes text from outside fit for one line of an error.
func oneLine(s string) string { return tracker.Line(s, 200) }
