package egress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
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
	replyOK      = "ok\n"
	replyRefused = "no "
)

// verb is the kind of a connection.
type verb string

const (
	verbPlan     verb = "plan"
	verbProxy    verb = "proxy"
	verbEndpoint verb = "endpoint"
	verbConnect  verb = "connect"
)

// plan is the proxy's configuration for the forwarder.
type plan struct {
	Ports     []int `json:"ports"`         // to listen on for connections to names
	Own       []int `json:"own,omitempty"` // ports where the host's own loopback is allowed
	Endpoints int   `json:"endpoints"`     // number of endpoints
}

// preface is the first line of a connection.
type preface struct {
	verb verb
	arg  string
}

func (p preface) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s %s", protocol, p.verb, p.arg), " ") + "\n"
}

var errPreface = errors.New("not a line of this protocol")

// readPreface reads the first line. It checks only the syntax: what follows is equally untrusted.
func readPreface(r io.Reader) (preface, error) {
	line, err := readLine(r)
	if err != nil {
		return preface{}, err
	}
	name, rest, _ := strings.Cut(line, " ")
	kind, arg, has := strings.Cut(rest, " ")
	p := preface{verb(kind), arg}
	wants := p.verb == verbEndpoint || p.verb == verbConnect
	known := wants || p.verb == verbPlan || p.verb == verbProxy
	if name != protocol || !known || wants != (arg != "") || has != wants || strings.Contains(arg, " ") {
		return preface{}, errPreface
	}
	return p, nil
}

// refusedError is the proxy's "no" with its reason.
type refusedError struct{ reason Reason }

func (e *refusedError) Error() string { return "refused: " + string(e.reason) }

// readReply reads the proxy's line. It returns nil for "ok".
func readReply(r io.Reader) error {
	line, err := readLine(r)
	if err != nil {
		return err
	}
	if line+"\n" == replyOK {
		return nil
	}
	if reason, ok := strings.CutPrefix(line, replyRefused); ok {
		return &refusedError{Reason(clip(reason))}
	}
	return errPreface
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
			return "", errPreface
		}
		line.WriteByte(b[0])
	}
}
