package proof

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// agentTime is how long an ssh-agent may take: it may ask a person first.
const agentTime = time.Minute

// Check reports that the key cannot sign, because no ssh-agent has its private half. It asks the agent, and signs nothing.
func (k *Key) Check(ctx context.Context) error {
	if k.private != nil {
		return nil
	}
	return k.ask(ctx, func(a agent.Agent, public ssh.PublicKey) error {
		known, err := a.List()
		if err != nil {
			return fmt.Errorf("ssh-agent: %w", err)
		}
		if !slices.ContainsFunc(known, func(other *agent.Key) bool { return string(other.Blob) == string(public.Marshal()) }) {
			return fmt.Errorf("the ssh-agent does not have key %s; add it with: ssh-add FILE", k)
		}
		return nil
	})
}

func (k *Key) signByAgent(ctx context.Context, data []byte) (signature []byte, err error) {
	err = k.ask(ctx, func(a agent.Agent, public ssh.PublicKey) error {
		signed, err := a.Sign(public, data)
		if err != nil {
			return fmt.Errorf("ssh-agent does not sign with key %s: %w", k, err)
		}
		if k.public.Verify(ctx, data, signed.Blob) != nil || signed.Format != ssh.KeyAlgoED25519 {
			return fmt.Errorf("what ssh-agent answers is no signature by key %s", k)
		}
		signature = signed.Blob
		return nil
	})
	return signature, err
}

// ask connects to the agent for one question.
func (k *Key) ask(ctx context.Context, question func(agent.Agent, ssh.PublicKey) error) error {
	if k.agent == "" {
		return errors.New("it is a public key, and SSH_AUTH_SOCK names no ssh-agent that has its private half")
	}
	public, err := ssh.NewPublicKey(k.public.key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, agentTime, errors.New("ssh-agent does not answer"))
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", k.agent)
	if err != nil {
		return fmt.Errorf("ssh-agent: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	err = question(agent.NewClient(conn), public)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
