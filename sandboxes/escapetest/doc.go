// Package escapetest attacks sandboxes: a suite that every isolating provider's own test calls with [Run], and nothing
// else uses. Each attack must fail inside and leave the host, and the sandbox's own next command, as they were.
//
// The attacker is the test program itself, shown inside: a TestMain calls [Attack] first.
package escapetest
