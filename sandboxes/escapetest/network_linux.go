package escapetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"time"
)

func networkCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"network/there is none": func(s *suite) {
			var touched []net.Listener
			targets := []string{
				"tcp 1.1.1.1:53", "tcp 169.254.169.254:80", "tcp 192.168.0.1:80", "tcp 10.0.0.1:443", "udp 8.8.8.8:53",
				"tcp [fd00:ec2::254]:80", "tcp [2606:4700::1111]:443",
			}
			abstract := "@escapetest-" + rand.Text()
			for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "unix": abstract} {
				l, err := (&net.ListenConfig{}).Listen(s.Context(), network, address)
				if err != nil {
					s.Fatal(err)
				}
				touched = append(touched, l)
				targets = append(targets, network+" "+l.Addr().String())
			}
			r := s.open(nil)
			r.attack("network", targets...)
			for _, l := range touched {
				_ = l.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now())
				if c, err := l.Accept(); err == nil {
					_ = c.Close()
					s.Errorf("the sandbox has connected to %s of the host", l.Addr())
				}
				_ = l.Close()
			}
			r.works()
		},
	}
}

func attackNetwork(a *attempt, targets []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, target := range targets {
		var network, address string
		_, _ = fmt.Sscan(target, &network, &address)
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			_ = c.Close()
		}
		a.try("connect to "+target, err)
	}
	for _, resolver := range []string{"", "8.8.8.8:53"} {
		r := net.Resolver{PreferGo: true}
		if resolver != "" {
			r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, resolver)
			}
		}
		found, err := r.LookupHost(ctx, "c2VjcmV0.example.com")
		if err == nil {
			a.report("look up a name:", found)
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			a.report("the network has", i.Name)
		}
	}
}
