package router

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// approvalLife is how long the approval of a returned plan is valid.
const approvalLife = time.Hour

// approvals seals plans that wait for approval. A sealed plan that its caller gives back unchanged and in time is
// approved. A seal is the time when it expires and a MAC over this time, the plan, the caller, its key or subject, and
// the profile.
type approvals struct {
	keys func() [][]byte
}

// newApprovals returns approvals with keys; see Hooks.SealingKeys. If keys is nil, the key is lost with the process.
func newApprovals(keys func() [][]byte) approvals {
	if keys == nil {
		keys = sync.OnceValue(func() [][]byte { return [][]byte{[]byte(rand.Text())} })
	}
	return approvals{keys}
}

// seal returns the approval of a plan that waits for it.
func (a approvals) seal(p *plan.Plan, o *execution.Origin, now time.Time) string {
	return base64.RawURLEncoding.EncodeToString(sealed(a.keys()[0], p, o, now.Add(approvalLife).UnixMilli()))
}

// valid reports whether a plan has a seal that was made for it and for its origin.
func (a approvals) valid(p *plan.Plan, o *execution.Origin, now time.Time) bool {
	given, err := base64.RawURLEncoding.Strict().DecodeString(p.Approval)
	if err != nil || len(given) < 8 {
		return false
	}
	expires := int64(binary.BigEndian.Uint64(given))
	return now.UnixMilli() < expires && slices.ContainsFunc(a.keys(), func(key []byte) bool {
		return hmac.Equal(given, sealed(key, p, o, expires))
	})
}

func sealed(key []byte, p *plan.Plan, o *execution.Origin, expires int64) []byte {
	out := binary.BigEndian.AppendUint64(nil, uint64(expires))
	digest := p.Digest()
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{out, digest[:], []byte(o.Caller), []byte(o.Login), []byte(o.Profile)} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	return mac.Sum(out)
}
