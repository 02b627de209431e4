package notify

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// certificate returns a self-signed certificate for the hosts, and a pool that trusts it.
func certificate(t *testing.T, until time.Time, hosts ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts[:1], NotBefore: until.Add(-3 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	for _, host := range hosts[1:] {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(host))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// secureSMTP starts a mail server for one connection. It uses TLS from the start, or, if offer is not empty, sends offer in
// its greeting and reply as the answer to STARTTLS. said returns what the client has sent without TLS and with it.
func secureSMTP(t *testing.T, cert tls.Certificate, offer, reply string) (address string, said func() (plain, secret string)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var plain, secret strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		raw, err := l.Accept()
		if err != nil {
			return
		}
		defer raw.Close()
		conn, log := raw, &plain
		change := func() bool {
			secure := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
			conn, log = secure, &secret
			return secure.HandshakeContext(t.Context()) == nil
		}
		if offer == "" && !change() {
			return
		}
		fmt.Fprint(conn, "220 here\r\n")
		data := false
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			line := lines.Text()
			log.WriteString(line + "\n")
			switch {
			case data && line == ".":
				data = false
				fmt.Fprint(conn, "250 taken\r\n")
			case data:
			case line == "DATA":
				data = true
				fmt.Fprint(conn, "354 go on\r\n")
			case strings.HasPrefix(line, "EHLO") && log == &plain:
				fmt.Fprintf(conn, "250-here\r\n250-%s\r\n250 AUTH PLAIN\r\n", offer)
			case strings.HasPrefix(line, "EHLO"):
				fmt.Fprint(conn, "250-here\r\n250 AUTH PLAIN\r\n")
			case line == "STARTTLS":
				fmt.Fprint(conn, reply+"\r\n")
				if strings.HasPrefix(reply, "220") {
					if !change() {
						return
					}
					lines = bufio.NewScanner(conn)
				}
			case strings.HasPrefix(line, "AUTH"):
				fmt.Fprint(conn, "235 welcome\r\n")
			case line == "QUIT":
				fmt.Fprint(conn, "221 bye\r\n")
				return
			default:
				fmt.Fprint(conn, "250 ok\r\n")
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), func() (string, string) {
		_ = l.Close()
		<-ended
		return plain.String(), secret.String()
	}
}

// Mail is sent only over TLS to a server with a valid certificate. Otherwise no letter, recipient or password is sent.
func TestMailOverTLS(t *testing.T) {
	t.Parallel()
	const host = "mail.example.test"
	now := time.Now()
	good, trusted := certificate(t, now.Add(time.Hour), host, "127.0.0.1")
	stranger, _ := certificate(t, now.Add(time.Hour), host, "127.0.0.1")
	other, trustsOther := certificate(t, now.Add(time.Hour), "other.example.test")
	old, trustsOld := certificate(t, now.Add(-time.Hour), host, "127.0.0.1")
	for name, c := range map[string]struct {
		implicit     bool
		cert         tls.Certificate
		roots        *x509.CertPool
		offer, reply string
		sent         bool
	}{
		"STARTTLS":                     {false, good, trusted, "STARTTLS", "220 go on", true},
		"STARTTLS, nobody's":           {false, stranger, trusted, "STARTTLS", "220 go on", false},
		"STARTTLS, not the system's":   {false, good, nil, "STARTTLS", "220 go on", false},
		"STARTTLS, of another":         {false, other, trustsOther, "STARTTLS", "220 go on", false},
		"STARTTLS, over":               {false, old, trustsOld, "STARTTLS", "220 go on", false},
		"STARTTLS refused":             {false, good, trusted, "STARTTLS", "454 not now", false},
		"no STARTTLS":                  {false, good, trusted, "SIZE", "502 what", false},
		"implicit":                     {true, good, trusted, "", "", true},
		"implicit, nobody's":           {true, stranger, trusted, "", "", false},
		"implicit, not the system's":   {true, good, nil, "", "", false},
		"implicit, of another":         {true, other, trustsOther, "", "", false},
		"implicit, over":               {true, old, trustsOld, "", "", false},
		"implicit, but it speaks none": {true, good, trusted, "STARTTLS", "220 go on", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, said := secureSMTP(t, c.cert, c.offer, c.reply)
			m := Mail{Server: host + ":587", From: "a@example.invalid", To: []string{"b@example.invalid"}, User: "u", Password: "a-pass-word"}
			m.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			if m.implicit = c.implicit; m.implicit {
				m.Server = address
			}
			if c.roots != nil {
				m.TLS = &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12}
			}
			err := m.Send(t.Context(), message())
			plain, secret := said()
			if (err == nil) != c.sent {
				t.Errorf("sent: %t, %v", err == nil, err)
			}
			for _, word := range []string{"AUTH", "RCPT", "shop/fix"} {
				if strings.Contains(plain, word) || strings.Contains(secret, word) != c.sent {
					t.Errorf("%s without TLS\n%s\nand with it\n%s", word, plain, secret)
				}
			}
		})
	}
}
