package tests

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
)

// What keeps a replica from starting is one line, which never has a password. With the right credentials and
// certificates it starts.
func TestCluster_Starts(t *testing.T) {
	t.Parallel()
	const here = "NATS at 127.0.0.1:"
	running := cluster(t, 1)
	users := natsOf(t, func(o *server.Options) { o.Username, o.Password = "nexus", "right" })
	operator := newOperator(t)
	trusting := natsOf(t, operator.trust)
	ours, others := authority(t), authority(t)
	cert, key := issue(t, ours, time.Hour)
	secure := func(verify bool) string {
		tls, err := server.GenTLSConfig(&server.TLSConfigOpts{CaFile: ours.CA, CertFile: cert, KeyFile: key, Verify: verify})
		if err != nil {
			t.Fatal(err)
		}
		n := natsOf(t, func(o *server.Options) { o.TLS, o.TLSConfig = true, tls })
		return strings.Replace(n.URL(), "nats:", "tls:", 1)
	}
	asks, mutual := secure(false), secure(true)
	with := func(url, format string, args ...any) string {
		return fmt.Sprintf("url: %q, ", url) + fmt.Sprintf(format, args...)
	}
	client := func(of *clustertest.Authority, lives time.Duration) string {
		cert, key := issue(t, of, lives)
		return with(mutual, "tls: {ca: %q, cert: %q, key: %q}", ours.CA, cert, key)
	}
	account := operator.account(func(c *jwt.AccountClaims) {
		c.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, Streams: -1, Consumer: -1}
	})
	creds := func(account nkeys.KeyPair, change func(*jwt.UserClaims)) string {
		return with(trusting.URL(), "creds: %q", operator.credentials(account, change))
	}
	for name, test := range map[string]struct {
		nats    string
		replica string
		key     string // NEXUS_CLUSTER_KEY
		code    int
		want    string // part of the line; "" if it starts
	}{
		"nobody listens":    {nats: with("nats://127.0.0.1:1", ""), code: 1, want: here + "1: nothing listens there"},
		"too old":           {nats: with(oldNATS(t), ""), code: 1, want: "it is too old: use nats-server 2.11 or later"},
		"full":              {nats: with(fullNATS(t), ""), code: 1, want: "raise max_bytes of the stream KV_agenticnexus at NATS, 127.0.0.1:"},
		"no JetStream":      {nats: with(natsOf(t, func(o *server.Options) { o.JetStream = false }).URL(), ""), code: 1, want: "it has no JetStream: start it with -js"},
		"same name":         {nats: with(running.nats.URL(), ""), replica: "r1", code: 1, want: `another replica of the cluster has the name "r1": it runs at ` + running.replicas[0].URL()},
		"other cluster key": {nats: with(running.nats.URL(), ""), key: strings.Repeat("5a", 32), code: 1, want: "NEXUS_CLUSTER_KEY"},

		"password wrong":       {nats: with(strings.Replace(users.URL(), "//", "//nexus:hunter2@", 1), ""), code: 1, want: here + users.URL()[17:] + ": it refuses the credentials"},
		"password missing":     {nats: with(users.URL(), ""), code: 1, want: "it refuses the credentials"},
		"credentials":          {nats: creds(account, nil)},
		"credentials missing":  {nats: with(trusting.URL(), ""), code: 1, want: "it refuses the credentials"},
		"credentials expired":  {nats: creds(account, func(c *jwt.UserClaims) { c.Expires = 1 }), code: 1, want: "it refuses the credentials"},
		"credentials foreign":  {nats: creds(pair(t, nkeys.CreateAccount), nil), code: 1, want: "it refuses the credentials"},
		"credentials garbled":  {nats: with(trusting.URL(), "creds: %q", cert), code: 1, want: "the credentials file has no key"},
		"credentials unknown":  {nats: with(trusting.URL(), "creds: none.creds"), code: 2, want: `cluster.nats.creds: cannot read "none.creds": no such file`},
		"account without room": {nats: creds(operator.account(nil), nil), code: 1, want: "enable it for the account"},
		"user without permission": {nats: creds(account, func(c *jwt.UserClaims) { c.Pub.Allow.Add("$JS.API.INFO") }), code: 1,
			want: "allow it to publish on $JS.API.>"},

		"TLS":               {nats: with(asks, "tls: {ca: %q}", ours.CA)},
		"TLS without CA":    {nats: with(asks, ""), code: 1, want: "unknown authority"},
		"TLS with other CA": {nats: with(asks, "tls: {ca: %q}", others.CA), code: 1, want: "unknown authority"},
		"TLS with no CA":    {nats: with(asks, "tls: {ca: %q}", key), code: 1, want: "no TLS connection: check tls:// in the URL"},
		"no TLS": {nats: with(strings.Replace(running.nats.URL(), "nats:", "tls:", 1), ""), code: 1,
			want: "no TLS connection: check tls:// in the URL"},
		"mTLS":         {nats: client(ours, time.Hour)},
		"mTLS without": {nats: with(mutual, "tls: {ca: %q}", ours.CA), code: 1, want: "certificate required"},
		"mTLS foreign": {nats: client(others, time.Hour), code: 1, want: "check tls:// in the URL, and the CA and certificate files"},
		"mTLS expired": {nats: client(ours, -time.Hour), code: 1, want: "expired certificate"},
		"mTLS half":    {nats: with(mutual, "tls: {cert: %q}", cert), code: 2, want: "cluster.nats.tls: needs both cert and key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &replicated{t: t, dir: t.TempDir()}
			c.config = filepath.Join(c.dir, "nexus.yaml")
			write(t, c.config, fmt.Sprintf("cluster: {nats: {%s}}\nmcpServers: {work: {url: http://127.0.0.1:1/mcp}}\n", test.nats))
			r := c.replica(cmp.Or(test.replica, "new"))
			if test.key != "" {
				r.Env = []string{"NEXUS_CLUSTER_KEY=" + test.key}
			}
			if err := r.Start(); err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if err := r.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				if code := r.Stop(); code != 0 {
					t.Errorf("got exit code %d, want 0", code)
				}
				return
			}
			code, log := r.Wait(), c.logs[0]
			lines := log.Lines("nexus: ")
			if code != test.code || len(lines) != 1 || !strings.Contains(lines[0], test.want) || log.Has("hunter2") {
				t.Errorf("got exit code %d and %q, want %d and %s", code, lines, test.code, test.want)
			}
		})
	}
}

// natsOf starts a NATS server with other options.
func natsOf(t *testing.T, change func(*server.Options)) *clustertest.NATS {
	t.Helper()
	n, err := clustertest.NewNATS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	change(&n.Options)
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	return n
}

// connect returns a client of a NATS server.
func connect(t *testing.T, n *clustertest.NATS) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// oldNATS returns the URL of a server whose JetStream answers as one before 2.11.
func oldNATS(t *testing.T) string {
	t.Helper()
	n := natsOf(t, func(o *server.Options) { o.JetStream = false })
	_, err := connect(t, n).Subscribe("$JS.API.INFO", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"api":{"total":1}}`)) // else the test fails
	})
	if err != nil {
		t.Fatal(err)
	}
	return n.URL()
}

// fullNATS returns the URL of a server whose bucket an operator has made too small.
func fullNATS(t *testing.T) string {
	t.Helper()
	n := natsOf(t, func(*server.Options) {})
	js, err := jetstream.New(connect(t, n))
	if err == nil {
		_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "agenticnexus", LimitMarkerTTL: time.Minute, MaxBytes: 100})
	}
	if err != nil {
		t.Fatal(err)
	}
	return n.URL()
}

func authority(t *testing.T) *clustertest.Authority {
	t.Helper()
	a, err := clustertest.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// issue returns the files of a certificate and its key.
func issue(t *testing.T, a *clustertest.Authority, lives time.Duration) (cert, key string) {
	t.Helper()
	cert, key, err := a.Issue(time.Now().Add(lives))
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// operator makes accounts and users for NATS servers that trust it, as nsc does.
type operator struct {
	t        *testing.T
	key      nkeys.KeyPair
	accounts server.MemAccResolver
}

func newOperator(t *testing.T) *operator { return &operator{t: t, key: pair(t, nkeys.CreateOperator)} }

// trust lets a server trust the operator.
func (o *operator) trust(s *server.Options) {
	s.TrustedKeys, s.AccountResolver, s.SystemAccount = []string{public(o.t, o.key)}, &o.accounts, public(o.t, o.account(nil))
}

// account returns the key of a new account.
func (o *operator) account(change func(*jwt.AccountClaims)) nkeys.KeyPair {
	o.t.Helper()
	key := pair(o.t, nkeys.CreateAccount)
	claims := jwt.NewAccountClaims(public(o.t, key))
	if change != nil {
		change(claims)
	}
	token, err := claims.Encode(o.key)
	if err == nil {
		err = o.accounts.Store(claims.Subject, token)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	return key
}

// credentials returns the file of a new user of an account.
func (o *operator) credentials(account nkeys.KeyPair, change func(*jwt.UserClaims)) string {
	o.t.Helper()
	key := pair(o.t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(public(o.t, key))
	if change != nil {
		change(claims)
	}
	token, err := claims.Encode(account)
	if err != nil {
		o.t.Fatal(err)
	}
	seed, err := key.Seed()
	if err != nil {
		o.t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		o.t.Fatal(err)
	}
	name := filepath.Join(o.t.TempDir(), "nats.creds")
	write(o.t, name, string(text))
	return name
}

func pair(t *testing.T, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	k, err := create()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func public(t *testing.T, k nkeys.KeyPair) string {
	t.Helper()
	p, err := k.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
