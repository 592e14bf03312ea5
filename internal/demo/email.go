package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	outboxURI  = "email:///outbox"
	maxOutbox  = 100 // mails; older ones are dropped
	maxAddress = 254
	maxSubject = 200
	maxBody    = 20_000
)

type emailArgs struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

type emailResult struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	To     string `json:"to"`
}

// outbox holds the recorded mails.
type outbox struct {
	mu       sync.Mutex
	recorded int // ever
	mails    []recordedMail
}

type recordedMail struct {
	ID      string `json:"id"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

func emailServer() *server.MCPServer {
	box := &outbox{}
	s := newMCPServer("email", "Demo e-mail",
		"Records e-mails in memory and sends nothing. The resource "+outboxURI+" lists them.")
	// Sent mail cannot be recalled, so the tool declares itself destructive and needs consent like a
	// real one.
	s.AddTool(mcp.NewTool("send_email",
		mcp.WithDescription("Send an e-mail message to one recipient. "+
			"This demo only records the mail; nothing leaves the machine."),
		mcp.WithString("to", mcp.Required(), mcp.MinLength(3), mcp.MaxLength(maxAddress), withFormat("email"),
			mcp.Description("E-mail address of the recipient")),
		mcp.WithString("subject", mcp.Required(), mcp.MinLength(1), mcp.MaxLength(maxSubject),
			mcp.Description("Subject line")),
		mcp.WithString("body", mcp.Required(), mcp.MinLength(1), mcp.MaxLength(maxBody),
			mcp.Description("Plain text of the message")),
		mcp.WithRawOutputSchema(json.RawMessage(`{
			"type": "object",
			"properties": {
				"id": {"type": "string"},
				"status": {"const": "recorded", "description": "The demo records and sends nothing"},
				"to": {"type": "string", "format": "email"}
			},
			"required": ["id", "status", "to"],
			"additionalProperties": false
		}`)),
		mcp.WithTitleAnnotation("Send e-mail"),
		mcp.WithReadOnlyHintAnnotation(false),
		mcp.WithDestructiveHintAnnotation(true),
		mcp.WithIdempotentHintAnnotation(false),
		mcp.WithOpenWorldHintAnnotation(true),
	), handler(box.send))
	s.AddResource(mcp.NewResource(outboxURI, "outbox",
		mcp.WithResourceDescription("The mails recorded so far, oldest first"),
		mcp.WithMIMEType("application/json"),
	), box.read)
	return s
}

// withFormat names the format of a string property.
func withFormat(format string) mcp.PropertyOption {
	return func(schema map[string]any) { schema["format"] = format }
}

func (b *outbox) send(_ context.Context, args emailArgs) (*mcp.CallToolResult, error) {
	for _, err := range []error{
		required("to", args.To, maxAddress),
		required("subject", args.Subject, maxSubject),
		required("body", args.Body, maxBody),
	} {
		if err != nil {
			return nil, err
		}
	}
	to, err := address(args.To)
	if err != nil {
		return nil, fmt.Errorf("the argument to is no e-mail address: %w", err)
	}
	if strings.ContainsFunc(args.Subject, unicode.IsControl) {
		return nil, errors.New("the argument subject is more than one line of text")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recorded++
	sent := recordedMail{ID: fmt.Sprintf("mail-%d", b.recorded), To: to, Subject: args.Subject, Body: args.Body}
	b.mails = append(b.mails, sent)
	if len(b.mails) > maxOutbox {
		b.mails = slices.Delete(b.mails, 0, 1)
	}
	return mcp.NewToolResultStructured(emailResult{ID: sent.ID, Status: "recorded", To: to},
		fmt.Sprintf("Recorded as %s, not sent: the demo keeps the e-mail to %s in memory.", sent.ID, to)), nil
}

func (b *outbox) read(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, err := json.Marshal(append([]recordedMail{}, b.mails...))
	if err != nil {
		return nil, fmt.Errorf("listing the outbox: %w", err)
	}
	contents := mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "application/json", Text: string(text)}
	return []mcp.ResourceContents{contents}, nil
}

// address accepts a bare address such as a@example.com and returns it.
func address(text string) (string, error) {
	parsed, err := mail.ParseAddress(text)
	if err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "mail: "))
	}
	if parsed.Address != strings.TrimSpace(text) {
		return "", errors.New("write it without a name, as in ada@example.com")
	}
	return parsed.Address, nil
}
