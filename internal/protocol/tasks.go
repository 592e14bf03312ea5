package protocol

// Tasks are the extension of 2026-07-28 in which the result of a request is fetched later. The names are those of the
// extension's specification (SEP-2663).
const (
	ExtensionTasks = "io.modelcontextprotocol/tasks"
	MemberTasks    = "taskIds" // of the filter of subscriptions/listen: ids of the tasks to report
	MethodTask     = "notifications/tasks"
	MethodTaskGet  = "tasks/get"
	MethodUpdate   = "tasks/update"
	MethodCancel   = "tasks/cancel"
	ResultTask     = "task" // resultType of a result that names a task
)

// OfTasks reports whether the extension defines a method of requests, each of which names a task in params.taskId.
func OfTasks(method string) bool {
	return method == MethodTaskGet || method == MethodUpdate || method == MethodCancel
}
