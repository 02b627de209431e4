package keys

import "github.com/ralph-pool/ralph/internal/notify"

// serviceKeys returns the keys of the group "Service".
func serviceKeys() []Key {
	return []Key{
		{
			Name:  "webhook-secret-file",
			Help:  "file with the secret of the webhook; empty: RALPH_WEBHOOK_SECRET",
			Kind:  Path,
			Guard: Own,
			Use:   toServe,
		},
		{
			Name:  "dashboard-url",
			Help:  "address of the dashboard for people, used in notifications; empty: no links",
			Check: notify.CheckPage,
			Guard: Own,
			Use:   toWork,
		},
	}
}

// notificationKeys returns the keys of the group "Notifications".
func notificationKeys() []Key {
	return []Key{
		{
			Name: "notify-on",
			Help: "which events to notify of: human (a person has to look), " +
				"problem (the backlog cannot be worked), and outcomes such as succeeded",
			Kind:    Names,
			Default: []string{notify.OnHuman, notify.OnProblem},
			Check:   notify.CheckOn,
			Guard:   Own,
			Use:     toWork,
		},
		{
			Name:  "notify-command",
			Help:  "program that gets each notification as JSON on standard input",
			Kind:  Words,
			Guard: Own,
			Use:   toWork,
		},
		{
			Name:  "notify-url",
			Help:  "address that each notification is posted to as JSON",
			Check: notify.CheckAddress,
			Guard: Own,
			Use:   toWork,
		},
		{
			Name:  "notify-secret-file",
			Help:  "file with the secret that signs requests to notify-url; empty: not signed",
			Kind:  Path,
			Guard: Own,
			Use:   toWork,
		},
		{
			Name:  "notify-slack-file",
			Help:  "file with the address of a Slack incoming webhook",
			Kind:  Path,
			Guard: Own,
			Use:   toWork,
		},
		{
			Name:  "notify-mail-to",
			Help:  "addresses that get each notification by e-mail",
			Kind:  Names,
			Check: notify.CheckMail,
			Guard: Own,
			Use:   toWork,
		},
		{
			Name:  "notify-mail-from",
			Help:  "sender address of notifications by e-mail",
			Check: notify.CheckMail,
			Guard: Own,
			Use:   toWork,
		},
		{
			Name:  "notify-mail-server",
			Help:  "HOST:PORT of the mail server, with TLS",
			Check: notify.CheckServer,
			Guard: Own,
			Use:   toWork,
		},
		{
			Name:  "notify-mail-user",
			Help:  "user for the login at the mail server; empty: none",
			Guard: Own,
			Use:   toWork,
		},
		{
			Name:  "notify-mail-password-file",
			Help:  "file with the password of notify-mail-user",
			Kind:  Path,
			Guard: Own,
			Use:   toWork,
		},
	}
}

// fleetKeys returns the keys of the group "Fleet".
func fleetKeys() []Key {
	return []Key{
		{
			Name:  "fleet-parallel",
			Help:  "issues of the project worked at the same time on all machines; 0: no limit",
			Kind:  Int,
			Guard: Above,
			Use:   toServe,
		},
		{
			Name: "fleet-account",
			Help: "name of the account that agents of several projects share, " +
				"such as a provider's; empty: the agents' names",
			Guard: Changed,
			Use:   toServe,
		},
		{
			Name:  "fleet-account-parallel",
			Help:  "runs that may use the account at the same time on all machines; 0: no limit",
			Kind:  Int,
			Guard: Above,
			Use:   toServe,
		},
	}
}
