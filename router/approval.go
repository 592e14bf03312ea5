package router

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// approvalLife is how long the approval of a returned plan is valid.
const approvalLife = time.Hour

// approvals seals plans that wait for approval. A sealed plan that its caller gives back unchanged and in time is
// approved. A seal is the time when it expires and a MAC over this time, the plan, the caller and the profile.
type approvals struct {
	key func() []byte
}

// newApprovals returns approvals with a key. If key is nil, the key is lost with the process.
func newApprovals(key func() []byte) approvals {
	if key == nil {
		key = sync.OnceValue(func() []byte { return []byte(rand.Text()) })
	}
	return approvals{key}
}

// seal returns the approval of a plan that waits for it.
func (a approvals) seal(p *plan.Plan, o *execution.Origin, now time.Time) string {
	return base64.RawURLEncoding.EncodeToString(a.sealed(p, o, now.Add(approvalLife).UnixMilli()))
}

// valid reports whether a plan has a seal that was made for it and for its origin.
func (a approvals) valid(p *plan.Plan, o *execution.Origin, now time.Time) bool {
	given, err := base64.RawURLEncoding.Strict().DecodeString(p.Approval)
	if err != nil || len(given) < 8 {
		return false
	}
	expires := int64(binary.BigEndian.Uint64(given))
	return hmac.Equal(given, a.sealed(p, o, expires)) && now.UnixMilli() < expires
}

func (a approvals) sealed(p *plan.Plan, o *execution.Origin, expires int64) []byte {
	out := binary.BigEndian.AppendUint64(nil, uint64(expires))
	digest := p.Digest()
	mac := hmac.New(sha256.New, a.key())
	for _, part := range [][]byte{out, digest[:], []byte(o.Caller), []byte(o.Profile)} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	return mac.Sum(out)
}
