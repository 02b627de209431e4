// Package egress is a sandbox's only connection to a network: a proxy in ralph that connects only to the hosts of an
// allow-list, and adds credentials to requests, so that the sandbox holds none.
//
// It has two halves, joined by one unix socket per run. The sandbox's own network contains nothing but loopback.
//
//	in the sandbox                          unix socket      in ralph
//	program -> package forward -------------------------> [Proxy] -> the internet
//	           DNS, any name -> 127.64.x.y                 allow-list, name -> address, pinned
//	           :80 :443 and the rules' ports               TLS: the name asked for is the name connected to
//	           127.0.0.1:15380  HTTP proxy                 CONNECT and http:// requests
//	           127.0.0.1:15381… endpoints                  https:// to the real service, with the credential
//
// The [Proxy] makes all decisions. The [forward.Forwarder] serves programs that cannot use a unix socket. It runs among hostile
// processes: they may kill it, impersonate it, or use the socket themselves, and gain nothing by that.
//
// DNS makes programs work that ignore proxy variables: each name gets its own loopback address, so that a connection to the
// address identifies the name. No query leaves the sandbox. Ralph looks up a name only after a rule has allowed it, and
// connects to exactly the address that it has checked.
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
//	stop, err := forward.Start(forward.Config{Socket: path}) // in the new network namespace; stop it with the sandbox
//	// and for every command: forward.Env() in its environment, forward.ResolvConf as its /etc/resolv.conf
//
// Everything exported is safe for concurrent use.
package egress
