package forward

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// nameTTL is how long, in seconds, a program may cache an address.
const nameTTL = 60

// answerDNS answers one query: every name has one address, which leads to the forwarder. Nil means that it is not a query.
func answerDNS(query []byte, n *names) []byte {
	var parser dnsmessage.Parser
	head, err := parser.Start(query)
	if err != nil || head.Response {
		return nil
	}
	reply := dnsmessage.Message{Header: dnsmessage.Header{
		ID: head.ID, Response: true, OpCode: head.OpCode, RecursionDesired: head.RecursionDesired, RecursionAvailable: true,
	}}
	questions, err := parser.AllQuestions()
	switch {
	case err != nil || len(questions) != 1:
		reply.RCode = dnsmessage.RCodeFormatError
	case head.OpCode != 0:
		reply.RCode = dnsmessage.RCodeNotImplemented
	default:
		reply.Questions = questions
		answerQuestion(&reply, questions[0], n)
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

func answerQuestion(reply *dnsmessage.Message, q dnsmessage.Question, n *names) {
	name, err := wire.CanonicalHost(q.Name.String())
	if err != nil {
		reply.RCode = dnsmessage.RCodeNameError
		return
	}
	if q.Type != dnsmessage.TypeA || q.Class != dnsmessage.ClassINET {
		return // the name exists, but has no record of this type
	}
	address := netip.MustParseAddr(wire.Loopback)
	if name != "localhost" {
		address = n.address(name)
	}
	reply.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: nameTTL},
		Body:   &dnsmessage.AResource{A: address.As4()},
	}}
}

// serveUDP answers queries until the socket is closed.
func serveUDP(c net.PacketConn, n *names) {
	b := make([]byte, 4096)
	for {
		size, from, err := c.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the error of an earlier reply that was not received
		}
		if reply := answerDNS(b[:size], n); reply != nil {
			_, _ = c.WriteTo(reply, from)
		}
	}
}

// serveDNS answers the length-prefixed queries of one TCP connection.
func serveDNS(ctx context.Context, c net.Conn, n *names) {
	for ctx.Err() == nil {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		reply := answerDNS(query, n)
		if reply == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}
