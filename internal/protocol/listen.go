package protocol

// Names of subscriptions/listen, the request of 2026-07-28 that stays open for notifications.
const (
	MethodListen       = "subscriptions/listen"
	MethodAcknowledged = "notifications/subscriptions/acknowledged" // the first message of an accepted request
	MetaSubscription   = "io.modelcontextprotocol/subscriptionId"   // _meta member: the request that a message belongs to
)

// Announcement is a notification that subscriptions/listen selects.
type Announcement struct {
	Member           string // of the filter
	Kind, Capability string // that the server declares: capabilities.KIND.CAPABILITY
	Method           string // of the notification
}

// ListChanges are the announcements of changes of lists.
var ListChanges = [...]Announcement{
	{"toolsListChanged", "tools", "listChanged", "notifications/tools/list_changed"},
	{"promptsListChanged", "prompts", "listChanged", "notifications/prompts/list_changed"},
	{"resourcesListChanged", "resources", "listChanged", "notifications/resources/list_changed"},
}

// ResourceUpdates announces changes of resources. Its member is a list of their URIs.
var ResourceUpdates = Announcement{
	"resourceSubscriptions", "resources", "subscribe", "notifications/resources/updated",
}

// Announcements are all of them.
var Announcements = append(ListChanges[:], ResourceUpdates)
