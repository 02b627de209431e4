package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"
)

// Mail sends messages by e-mail.
type Mail struct {
	Server   string // HOST:PORT; port 465 uses TLS from the start, others STARTTLS
	From     string
	To       []string
	User     string // empty: no authentication
	Password string
	TLS      *tls.Config // default: the system's certificates

	dial     func(ctx context.Context, network, address string) (net.Conn, error) // default: a net.Dialer's; unused with implicit TLS
	implicit bool                                                                 // TLS from the start on any port
}

// CheckMail returns an error if the address is neither empty nor a valid e-mail address.
func CheckMail(address string) error {
	if _, err := netmail.ParseAddress(address); address != "" && err != nil {
		return errors.New("is not an e-mail address")
	}
	return nil
}

// CheckServer returns an error if the address is neither empty nor HOST:PORT.
func CheckServer(address string) error {
	if address == "" {
		return nil
	}
	_, _, err := hostPort(address)
	return err
}

func hostPort(address string) (string, int, error) {
	host, port, err := net.SplitHostPort(address)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || host == "" || n < 1 || n > 65535 {
		return "", 0, fmt.Errorf("%q is not HOST:PORT", address)
	}
	return host, n, nil
}

// Name implements Channel.
func (Mail) Name() string { return "mail" }

// Place implements Channel.
func (c Mail) Place() string { return strings.Join(append([]string{c.Server}, c.To...), "\n") }

// Send implements Channel. Without TLS it sends only to a server on this host.
func (c Mail) Send(ctx context.Context, m Message) error {
	host, port, err := hostPort(c.Server)
	if err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	letter := mail.NewMsg()
	if err := cmp.Or(letter.From(c.From), letter.To(c.To...)); err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	letter.Subject("ralph: " + shortened(m.Text, 150))
	letter.SetMessageIDWithValue(m.ID + "@ralph.invalid") // the same for each attempt, so that mail programs show it once
	letter.SetDateWithValue(m.Time)
	letter.SetGenHeader("Auto-Submitted", "auto-generated")
	letter.SetBodyString(mail.TypeTextPlain, m.body())
	options := []mail.Option{mail.WithPort(port), mail.WithTimeout(sendTime / 2), mail.WithoutNoop()}
	if c.TLS != nil {
		config := c.TLS.Clone()
		config.ServerName = host
		options = append(options, mail.WithTLSConfig(config))
	}
	implicit := c.implicit || port == 465
	switch {
	case implicit:
		options = append(options, mail.WithSSL())
	case isLocal(host):
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if c.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(c.User), mail.WithPassword(c.Password))
	}
	var conn net.Conn // go-mail leaves it open if authentication fails
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	if !implicit { // with implicit TLS go-mail must dial itself, or it would not know that TLS is on
		options = append(options, mail.WithDialContextFunc(func(ctx context.Context, network, address string) (_ net.Conn, err error) {
			dial := c.dial
			if dial == nil {
				dial = new(net.Dialer).DialContext
			}
			conn, err = dial(ctx, network, address)
			return conn, err
		}))
	}
	client, err := mail.NewClient(host, options...)
	if err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	return client.DialAndSendWithContext(ctx, letter)
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// body returns the message as lines of text.
func (m Message) body() string {
	text := m.Text + "\n"
	for _, line := range [][2]string{
		{"Project", m.Project}, {"Issue", m.Issue}, {"Title", m.Title}, {"Run", m.Run}, {"Branch", m.Branch},
		{"Reason", m.Reason}, {"Issue's page", m.IssueURL}, {"Request", m.RequestURL},
		{"Run's page", m.RunURL}, {"Project's page", m.ProjectURL},
	} {
		if line[1] != "" {
			text += "\n" + line[0] + ": " + line[1]
		}
	}
	return text + "\n"
}
