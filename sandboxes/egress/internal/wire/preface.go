// Package wire is what both halves of package egress share: the protocol of the unix socket between them, the addresses inside a
// sandbox, and work on connections. It is small, because a sandbox's first process waits for the initialization of what it uses.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ralph-pool/ralph/internal/neutral"
)

// The protocol of the unix socket. A connection begins with one line from the sandbox and one from the proxy; after
// "ok" it carries the bytes of its kind.
//
//	ralph-egress/1 plan              ok, then the plan as JSON
//	ralph-egress/1 proxy             ok, then HTTP as to an HTTP proxy
//	ralph-egress/1 endpoint N        ok, then HTTP as to the N-th endpoint
//	ralph-egress/1 connect HOST:PORT ok once connected, then the bytes of the connection
//	                                 no REASON
const (
	protocol     = "ralph-egress/1"
	maxPreface   = 512
	ReplyOK      = "ok\n"
	ReplyRefused = "no "
)

// Verb is the kind of a connection.
type Verb string

const (
	VerbPlan     Verb = "plan"
	VerbProxy    Verb = "proxy"
	VerbEndpoint Verb = "endpoint"
	VerbConnect  Verb = "connect"
)

// Plan is the proxy's configuration for the forwarder.
type Plan struct {
	Ports     []int `json:"ports"`         // to listen on for connections to names
	Own       []int `json:"own,omitempty"` // ports where the host's own loopback is allowed
	Endpoints int   `json:"endpoints"`     // number of endpoints
}

// Preface is the first line of a connection.
type Preface struct {
	Verb Verb
	Arg  string
}

// String returns the line.
func (p Preface) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s %s", protocol, p.Verb, p.Arg), " ") + "\n"
}

// ErrPreface means that the other side speaks another protocol.
var ErrPreface = errors.New("not a line of this protocol")

// ReadPreface reads the first line. It checks only the syntax: what follows is equally untrusted.
func ReadPreface(r io.Reader) (Preface, error) {
	line, err := readLine(r)
	if err != nil {
		return Preface{}, err
	}
	name, rest, _ := strings.Cut(line, " ")
	kind, arg, has := strings.Cut(rest, " ")
	p := Preface{Verb(kind), arg}
	wants := p.Verb == VerbEndpoint || p.Verb == VerbConnect
	known := wants || p.Verb == VerbPlan || p.Verb == VerbProxy
	if name != protocol || !known || wants != (arg != "") || has != wants || strings.Contains(arg, " ") {
		return Preface{}, ErrPreface
	}
	return p, nil
}

// RefusedError is the proxy's "no" with its reason.
type RefusedError struct{ Reason string }

// Error names the reason.
func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// ReadReply reads the proxy's line. It returns nil for "ok".
func ReadReply(r io.Reader) error {
	line, err := readLine(r)
	if err != nil {
		return err
	}
	if line+"\n" == ReplyOK {
		return nil
	}
	if reason, ok := strings.CutPrefix(line, ReplyRefused); ok {
		return &RefusedError{neutral.Shorten(reason, 80)}
	}
	return ErrPreface
}

// readLine reads exactly one line: the rest belongs to the next reader of the connection.
func readLine(r io.Reader) (string, error) {
	var line bytes.Buffer
	var b [1]byte
	for {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return "", err
		}
		switch {
		case b[0] == '\n':
			return line.String(), nil
		case b[0] < ' ' || b[0] > '~' || line.Len() == maxPreface:
			return "", ErrPreface
		}
		line.WriteByte(b[0])
	}
}
