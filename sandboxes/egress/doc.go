// Package egress is a sandbox's only connection to a network: a proxy in ralph that allows the hosts of an allow-list, and
// that puts credentials into requests, so that the sandbox holds none.
//
// It has two halves, joined by one unix socket per run. The sandbox has a network of its own with nothing in it but
// loopback.
//
//	in the sandbox                          unix socket      in ralph
//	program -> [Forwarder] -----------------------------> [Proxy] -> the internet
//	           DNS, any name -> 127.64.x.y                 allow-list, name -> address, pinned
//	           :80 :443 and the rules' ports               TLS: the name asked for is the name connected to
//	           127.0.0.1:15380  HTTP proxy                 CONNECT and http:// requests
//	           127.0.0.1:15381… endpoints                  https:// to the real service, with the credential
//
// The [Proxy] decides everything. The [Forwarder] is a convenience for programs that know no unix socket: it runs among
// hostile processes, which may kill it, imitate it or speak to the socket themselves, and gain nothing by that.
//
// A program that ignores proxy variables works because of DNS: each name gets a loopback address of its own, so that a
// connection to that address identifies the name. No query leaves the sandbox; ralph looks a name up only after a rule
// has allowed it, and connects to the very address that it has checked.
//
// For the program that composes ralph:
//
//	p, err := egress.New(egress.Config{Allow: rules, Endpoints: endpoints})
//	socket, err := p.Listen(dir)     // sandboxes.Spec.Egress
//	url := p.URL("anthropic")        // the agent's base URL
//	defer p.Close()
//
// For a sandbox provider whose Spec has an Egress socket:
//
//	stop, err := egress.Start(egress.ForwardConfig{Socket: path}) // in the new network namespace; stop it with the sandbox
//	// and for every command: egress.Env() in its environment, egress.ResolvConf as its /etc/resolv.conf
//
// Everything exported is safe for use by several goroutines.
package egress
