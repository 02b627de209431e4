package forge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Action is what to do about a failure.
type Action string

const (
	Wait  Action = "wait"  // until a known time, then go on
	Retry Action = "retry" // it may pass by itself
	Skip  Action = "skip"  // this issue; others may do
	Stop  Action = "stop"  // the sweep: nothing will do until somebody mends it
)

// Failure is one thing that went wrong between ralph and a forge, in one line. It never holds a secret.
type Failure struct {
	Method string
	Path   string
	Status int // 0: there was no answer
	What   string
	Mend   string // what a person can do; empty when there is nothing
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
	b.WriteString(f.What)
	if f.Mend != "" {
		b.WriteString("; " + f.Mend)
	}
	return b.String()
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// refusal is one row of the table of answers.
type refusal struct {
	what, mend string
	action     Action
}

// judge is the table: what an answer that is no success means.
func judge(status int, write bool) refusal {
	switch {
	case status == http.StatusUnauthorized:
		return refusal{"the token is refused", "give a valid one: it may have ended or been revoked", Stop}
	case status == http.StatusForbidden && write:
		return refusal{"the token may not do this", "give it write permission; `ralph doctor` says which", Stop}
	case status == http.StatusForbidden:
		return refusal{"the token may not read this", "give it read permission; `ralph doctor` says which", Stop}
	case status == http.StatusNotFound:
		return refusal{"there is no such thing, or the token may not see it", "check the project's name and the token's access", Skip}
	case status == http.StatusGone:
		return refusal{"it was deleted, or is switched off for this project", "switch it on in the project's settings", Skip}
	case status == http.StatusMovedPermanently, status == http.StatusTemporaryRedirect, status == http.StatusPermanentRedirect:
		return refusal{"the project has moved", "update the remote's address, or the configured project", Stop}
	case status == http.StatusUnprocessableEntity, status == http.StatusBadRequest, status == http.StatusConflict:
		return refusal{"the forge does not take it", "", Skip}
	case status == http.StatusUnavailableForLegalReasons:
		return refusal{"the project is blocked", "", Stop}
	case status == http.StatusTooManyRequests:
		return refusal{"too many requests", "", Wait}
	case status == http.StatusRequestTimeout, status >= 500:
		return refusal{"the forge has a fault", "", Retry}
	case status >= 400:
		return refusal{"the forge refuses it", "", Skip}
	}
	return refusal{"an answer that was not expected", "check the forge's address", Stop}
}

// Refusal judges an answer that is no success. Message is what the forge said, hostile text.
func Refusal(resp *http.Response, message string) *Failure {
	method, path := "", ""
	write := false
	if r := resp.Request; r != nil {
		method, path, write = r.Method, r.URL.Path, !reads(r)
	}
	row := judge(resp.StatusCode, write)
	if resp.StatusCode == http.StatusForbidden && closedToWords(message) {
		row = refusal{"nothing more can be said there", "unlock it, or go on in a new issue", Skip}
	}
	f := &Failure{Method: method, Path: path, Status: resp.StatusCode, What: row.what, Mend: row.mend, Action: row.action,
		Uncertain: write && row.action == Retry}
	if message = oneLine(message); message != "" {
		f.What += " (" + message + ")"
	}
	return f
}

// closedToWords reports GitHub's refusals to take comments on one issue: it is locked, or has too many.
func closedToWords(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "is locked") || strings.Contains(m, "commenting is disabled")
}

// Explain turns what an SDK returned into the seam's errors: *tracker.UnavailableError for what may pass,
// *tracker.RefusedError for what stops the sweep, else a *Failure. Resp may be nil, message is the forge's text of the
// refusal. The cause of an ended ctx stays what it is, and nil stays nil.
func Explain(ctx context.Context, resp *http.Response, message string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var f *Failure
	switch {
	case errors.As(err, &f):
	case resp != nil && resp.StatusCode >= 300:
		f = Refusal(resp, message)
	default:
		f = undecodable(resp, err)
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
	var f *Failure
	if errors.As(err, &f) {
		return f.Status
	}
	return 0
}

// Uncertain reports that a write may have happened although it gave this error.
func Uncertain(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Uncertain
}

// undecodable is an answer with a success status that the SDK could not read.
func undecodable(resp *http.Response, err error) *Failure {
	f := &Failure{What: errForm.Error() + " (" + oneLine(err.Error()) + ")", Action: Retry, Err: err}
	if resp != nil {
		f.Status = resp.StatusCode
		if r := resp.Request; r != nil {
			f.Method, f.Path, f.Uncertain = r.Method, r.URL.Path, !reads(r)
		}
	}
	return f
}

// broken judges a request that got no usable answer.
func broken(r *http.Request, err error) error {
	f := &Failure{Method: r.Method, Path: r.URL.Path, Action: Retry, Err: err, Uncertain: !reads(r)}
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &cert):
		f.What, f.Action, f.Uncertain = "the certificate of "+r.URL.Host+" is not trusted ("+oneLine(cert.Err.Error())+")", Stop, false
		f.Mend = "name the authority's file in ca-file, or mend the clock"
	case errors.As(err, &dns):
		f.What, f.Uncertain = "the name "+dns.Name+" cannot be resolved", false
		f.Mend = "check the network and the address"
	case errors.Is(err, errTooLong):
		f.What, f.Action = err.Error(), Skip
	case errors.Is(err, errTimeout), errors.Is(err, errMalformed):
		f.What = err.Error()
	case errors.Is(err, errForm):
		f.What, f.Mend = err.Error(), "if it stays so, check that the address is the API of a supported version"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		f.What = "the answer was cut"
	case errors.As(err, &op) && op.Op == "dial":
		f.What, f.Uncertain = "no connection to "+r.URL.Host+" ("+oneLine(op.Err.Error())+")", false
	default:
		f.What = "the connection broke (" + oneLine(err.Error()) + ")"
	}
	return f
}

func rateFailure(r *http.Request, until time.Time) error {
	return &Failure{Method: r.Method, Path: r.URL.Path, Action: Wait, Until: until,
		What: "the forge's rate limit is used up until " + until.Local().Format(time.DateTime)}
}

func tokenFailure(r *http.Request, err error) error {
	var f *Failure // asking for the token was itself a request
	if errors.As(err, &f) {
		return f
	}
	return &Failure{Method: r.Method, Path: r.URL.Path, Action: Stop, Err: err, What: oneLine(err.Error())}
}

// oneLine makes text from outside fit for one line of an error.
func oneLine(s string) string {
	const longest = 200
	s, _ = tracker.Clean(s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
