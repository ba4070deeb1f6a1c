"""A catalog as a large agent has it, and what is asked of it: 120 tools of ten domains, 107 queries with their tool."""

from farhand.core.definition import make_definition
from farhand.core.search import Entry

# ruff: noqa: E501
# One line a tool: name | description | parameter: what is said of it; …
DOMAINS = {
    ("Mail", "Reading, writing and sorting e-mail"): """
send_email | Sends an e-mail to one or more recipients. | to: Addresses of the recipients; subject: Subject line; body: Text of the message; attachments: Files to attach
reply_to_email | Replies to a message, to its sender or to everybody. | message_id: The message; body: Text of the reply; reply_all: Whether everybody gets it
forward_email | Passes a message on to somebody else. | message_id: The message; to: Who gets it; comment: A note above it
search_mailbox | Finds messages by sender, subject, date or words in them. | query: What to look for; folder: Where to look; since: Not older than this date
read_email | Gets a message with its headers and text. | message_id: The message; as_html: Keep the formatting
move_email | Moves a message to another folder. | message_id: The message; folder: Name of the folder
delete_email | Moves a message to the trash, or removes it for good. | message_id: The message; permanently: Do not keep it in the trash
create_mail_filter | Adds a rule that sorts incoming mail by itself. | condition: What the rule looks at; action: What is done with a match
set_out_of_office | Turns the automatic answer for absences on or off. | text: What is answered; from_date: First day; to_date: Last day
list_mail_folders | Lists all folders of the mailbox with the number of unread messages. | include_empty: Also those without a message
save_draft | Keeps an unfinished message among the drafts. | to: Addresses; subject: Subject line; body: Text so far
unsubscribe_newsletter | Ends the subscription of a mailing list. | message_id: A message of the list
""",
    ("Calendar", "Events, meetings and who has time when"): """
create_event | Puts a new event into the calendar and invites the participants. | title: What it is called; start: When it begins; end: When it ends; attendees: Who is invited; location: Where it is
update_event | Changes the time, place or participants of an event. | event_id: The event; changes: What is to be different
cancel_event | Cancels an event and tells those who were invited. | event_id: The event; message: What they are told
list_events | Shows what is in the calendar between two dates. | from_date: First day; to_date: Last day; calendar: Which calendar
find_free_slot | Proposes times at which all participants are available. | attendees: Who takes part; duration: Minutes; before: Latest date
respond_to_invitation | Accepts or declines a meeting that somebody else has planned. | event_id: The meeting; answer: Accept, decline or maybe
create_recurring_event | Plans something that repeats every day, week or month. | title: What it is called; rule: How it repeats; start: The first time
set_reminder | Reminds the user of something at a given time. | text: What to remember; at: When
book_meeting_room | Reserves a room of the building for a meeting. | room: Name of the room; start: From; end: Until; seats: How many people
share_calendar | Lets somebody else see or edit a calendar. | calendar: Which one; person: With whom; permission: See or edit
get_working_hours | Tells when a colleague usually works, and in which time zone. | person: Whose hours
export_calendar | Writes a calendar to an iCal file. | calendar: Which one; path: Name of the file
""",
    ("Files", "Files and folders of the workspace"): """
readFile | Reads the contents of a file as text. | path: Where it is; encoding: How it is encoded; maxBytes: Stop after so many
writeFile | Writes text to a file, which is made if it does not exist. | path: Where it is; content: The text; overwrite: Replace what is there
deleteFile | Removes a file from the disk. | path: Where it is
moveFile | Moves or renames a file. | source: Where it is; destination: Where it goes
copyFile | Makes a copy of a file. | source: Where it is; destination: Where the copy goes
listDirectory | Lists the files in a folder. | path: The folder; recursive: Also what is in its folders; pattern: Only names like this
createDirectory | Makes a folder, with all those above it. | path: The folder
searchFileContents | Finds lines that match an expression in all files, like grep. | pattern: Regular expression; glob: Which files; ignoreCase: Capital letters do not count
getFileMetadata | Size, owner, permissions and time of the last change of a file. | path: Where it is
compressFiles | Packs files into a zip archive. | paths: What goes in; archive: Name of the archive
extractArchive | Unpacks a zip or tar archive. | archive: Which one; destination: Where to
watchDirectory | Tells whenever something in a folder changes. | path: The folder; events: Kinds of change
""",
    ("Repositories", "Source code, issues and reviews on the code host"): """
git_commit | Records the staged changes with a message. | message: What was changed and why; amend: Change the last one instead
git_diff | Shows what was changed and not yet committed. | path: Only this file; staged: Only what is staged
git_create_branch | Starts a branch and switches to it. | name: Of the branch; from_ref: Where it starts
git_push | Uploads commits to the remote repository. | remote: Which one; branch: Which branch; force: Overwrite what is there
git_log | Shows the history of commits. | path: Of this file only; limit: How many; author: By whom
create_pull_request | Asks to merge a branch, with a title and a description. | title: Of the request; body: What it changes; head: The branch; base: Into which branch; draft: Not yet ready
merge_pull_request | Merges a pull request that was approved. | number: Of the request; method: Merge, squash or rebase
review_pull_request | Approves a pull request, asks for changes or comments on lines of it. | number: Of the request; verdict: Approve, comment or request changes; comments: On single lines
create_issue | Reports a bug or asks for a feature in the tracker. | title: In one line; body: Steps and details; labels: To sort it by; assignee: Who takes care
close_issue | Closes an issue as done or not planned. | number: Of the issue; reason: Done or not planned
search_code | Finds symbols and text in all repositories of the organisation. | query: What to look for; language: Only in this language; repo: Only in this one
rerun_workflow | Starts a failed CI build again. | run_id: The build; only_failed: Leave out the jobs that passed
""",
    ("Database", "SQL databases of the company"): """
sql_query | Runs a SELECT statement and returns the rows. | sql: The statement; parameters: Values for it; max_rows: Stop after so many
sql_execute | Runs a statement that changes data. | sql: The statement; parameters: Values for it
list_tables | Lists the tables of a schema. | schema: Which one
describe_table | Columns, types and indexes of a table. | table: Which one
explain_query | Shows the plan by which the database would execute a statement. | sql: The statement; analyze: Run it and measure
create_index | Adds an index to make reads of a column faster. | table: Which one; columns: In this order; unique: No value twice
backup_database | Writes a dump of the whole database. | database: Which one; target: Where to
restore_backup | Brings a database back from a dump. | backup: Which dump; database: Where to
run_migration | Brings the schema to a version. | version: Which one; dry_run: Only show the statements
kill_connection | Ends a session that blocks others. | pid: Number of the session
export_table_csv | Exports the rows of a table as comma-separated values. | table: Which one; path: Name of the file; delimiter: Between two values
get_slow_queries | The statements that took longest. | since: From when on; limit: How many
""",
    ("Shop", "Products, carts and orders of the web shop"): """
search_products | Finds articles by words, category or price. | query: Words; category: Only in this one; max_price: Not more expensive
get_product | Details, pictures and stock of an article. | sku: Article number
add_to_cart | Puts an article into the shopping cart. | sku: Article number; quantity: How many
remove_from_cart | Takes an article out of the shopping cart. | sku: Article number
apply_coupon | Redeems a voucher code for a discount. | code: On the voucher
checkout | Orders what is in the cart and pays. | address_id: Where it is sent; payment_method: How it is paid; shipping: How fast
get_order_status | Tells where an order is and when it arrives. | order_id: The order
cancel_order | Cancels an order that was not shipped yet. | order_id: The order; reason: Why
return_item | Announces that an article is sent back, and prints the label. | order_id: The order; sku: Article number; reason: Why
write_product_review | Rates an article with stars and a text. | sku: Article number; stars: One to five; text: What is good or bad
update_stock | Sets how many pieces of an article are in the warehouse. | sku: Article number; quantity: How many; warehouse: Which one
track_shipment | Follows a parcel by its tracking number. | tracking_number: On the label; carrier: Who brings it
""",
    ("Finance", "Invoices, payments and bookkeeping"): """
create_invoice | Makes out an invoice for a customer. | customer_id: The customer; items: What is charged; due: Until when it is to be paid; currency: ISO code
send_payment_reminder | Reminds a customer of an invoice that is overdue. | invoice_id: The invoice; level: First, second or last
refund_payment | Gives money back to a customer. | payment_id: The payment; amount: How much; reason: Why
list_transactions | Bookings of a bank account between two dates. | account: IBAN; from_date: First day; to_date: Last day
transfer_money | Orders a bank transfer. | from_account: IBAN; to_account: IBAN; amount: How much; purpose: What the recipient reads
get_account_balance | How much is on a bank account. | account: IBAN
convert_currency | Converts an amount at the rate of a day. | amount: How much; from_currency: ISO code; to_currency: ISO code; date: Day of the rate
submit_expense | Hands in a receipt to get the money back from the company. | amount: How much; category: Travel, meals, …; receipt: Picture of it
approve_expense | Releases what an employee has handed in. | expense_id: Which one; comment: For the employee
calculate_vat | Works out the value added tax of an amount. | amount: Net; country: ISO code; reduced: The lower rate
get_profit_and_loss | Income statement of a period. | from_date: First day; to_date: Last day; cost_center: Only this one
close_fiscal_month | Locks all bookings of a month. | month: Which one
""",
    ("People", "Staff, leave and hiring"): """
find_employee | Looks somebody up in the staff directory. | name: Whole or in part; department: Where; skill: What they can do
request_vacation | Asks for days off. | from_date: First day; to_date: Last day; comment: For the manager
approve_leave | Agrees to somebody's absence. | request_id: Which one
report_sick | Reports an illness. | from_date: First day; certificate: Of the doctor
get_org_chart | Who reports to whom. | department: From here down
create_job_posting | Publishes an open position. | title: Of the position; description: What is expected; salary_range: From and to
schedule_interview | Arranges a talk between a candidate and interviewers. | candidate_id: Who applies; interviewers: Who asks; date: When
rate_candidate | Leaves feedback about an applicant. | candidate_id: Who; score: One to five; notes: Why
onboard_employee | Prepares accounts, badge and laptop for a new colleague. | name: Who; start: First day; manager: Who leads them
get_payslip | Fetches the salary statement of a month. | month: Which one
log_working_time | Books hours on a project. | project: Which one; hours: How many; date: When
list_birthdays | Who has a birthday soon. | days: How far ahead
""",
    ("Infrastructure", "Servers, containers and monitoring"): """
k8s_list_pods | Lists the pods of a namespace with their state. | namespace: Which one; selector: Labels
k8s_scale_deployment | Sets the number of replicas of a deployment. | deployment: Which one; replicas: How many; namespace: Where
k8s_rollback | Brings a deployment back to its revision before. | deployment: Which one; revision: Which one, if not the last
get_logs | Log lines of a service. | service: Which one; since: From when on; level: Error, warning, …; contains: Only lines with this
restart_service | Stops a service and starts it again. | service: Which one; graceful: Wait for open requests
deploy_release | Rolls a version out to an environment. | version: Which one; environment: Staging or production; canary: Percent of the traffic first
query_metrics | Evaluates a PromQL expression over a time range. | expression: In PromQL; start: From; end: Until; step: Resolution
create_alert | Notifies the team on call when a metric passes a threshold. | metric: Which one; threshold: From which value on; channel: Who is told
acknowledge_incident | Tells that somebody takes care of an alarm. | incident_id: Which one; note: For the others
s3_upload | Uploads an object to a bucket. | bucket: Which one; key: Name of the object; file: What is uploaded
s3_presign_url | Makes a link by which an object can be downloaded without an account. | bucket: Which one; key: Name of the object; expires: Seconds
rotate_secret | Replaces a password or key by a new one. | secret: Its name; grace: How long the old one works
""",
    ("Travel and home", "Trips, weather, maps and devices at home"): """
search_flights | Finds flights between two airports. | origin: IATA code; destination: IATA code; date: Of departure; passengers: How many; cabin: Economy, business
book_flight | Buys a plane ticket that was found. | offer_id: The offer; travelers: Names as in the passport
search_hotels | Finds places to stay in a city. | city: Where; checkin: First night; checkout: Day of departure; guests: How many
book_hotel | Reserves a room in a hotel. | hotel_id: Which one; checkin: First night; checkout: Day of departure
rent_car | Reserves a rental car. | city: Where; pickup: When; dropoff: When; size: Small to van
get_weather | Current weather and forecast for a place. | city: Where; days: How many; unit: Celsius or Fahrenheit
get_directions | The way from one place to another by car, bike, train or on foot. | origin: Address; destination: Address; mode: How
find_restaurant | Looks for somewhere to eat nearby. | location: Around here; cuisine: Italian, Thai, …; open_now: Only if open
translate_text | Translates text into another language. | text: What; target_language: ISO code; tone: Formal or not
set_thermostat | Sets the temperature of a room. | room: Which one; temperature: In degrees
turn_light | Switches a lamp on or off, or dims it. | lamp: Which one; brightness: Percent; color: As #rrggbb
play_music | Plays a song, an album or a playlist. | what: Name; speaker: Where; volume: Percent
""",
}

QUERIES = {
    "send an email to a colleague": "send_email",
    "answer a mail": "reply_to_email",
    "pass on a message to somebody": "forward_email",
    "find emails from a sender": "search_mailbox",
    "automatic reply while on holiday": "set_out_of_office",
    "rule for incoming mail": "create_mail_filter",
    "unsubscribe": "unsubscribe_newsletter",
    "schedule a meeting and invite attendees": "create_event",
    "when are all participants available": "find_free_slot",
    "decline invitation": "respond_to_invitation",
    "reserve a meeting room": "book_meeting_room",
    "remind me": "set_reminder",
    "weekly recurring event": "create_recurring_event",
    "export calendar to ical": "export_calendar",
    "read file": "readFile",
    "open file contents": "readFile",
    "rename a file": "moveFile",
    "grep regular expression": "searchFileContents",
    "unzip archive": "extractArchive",
    "zip files": "compressFiles",
    "list files in folder": "listDirectory",
    "make a new folder": "createDirectory",
    "file size and permissions": "getFileMetadata",
    "create PR": "create_pull_request",
    "create pull request": "create_pull_request",
    "approve pull requests": "review_pull_request",
    "commit changes": "git_commit",
    "uncommitted changes": "git_diff",
    "new branch": "git_create_branch",
    "report a bug": "create_issue",
    "retry failed build": "rerun_workflow",
    "history of commits by author": "git_log",
    "select rows from the database": "sql_query",
    "columns of a table": "describe_table",
    "execution plan of a statement": "explain_query",
    "dump database": "backup_database",
    "export table as csv": "export_table_csv",
    "slow queries": "get_slow_queries",
    "schema migrations": "run_migration",
    "buy what is in the cart": "checkout",
    "voucher discount": "apply_coupon",
    "where is my parcel": "track_shipment",
    "send an article back": "return_item",
    "order status": "get_order_status",
    "rate an article with stars": "write_product_review",
    "warehouse stock": "update_stock",
    "bill a customer": "create_invoice",
    "overdue invoices": "send_payment_reminder",
    "give money back to customer": "refund_payment",
    "exchange rate currency conversion": "convert_currency",
    "account balance": "get_account_balance",
    "VAT": "calculate_vat",
    "expense receipt": "submit_expense",
    "days off": "request_vacation",
    "staff directory lookup": "find_employee",
    "salary statement": "get_payslip",
    "interview a candidate": "schedule_interview",
    "scale replicas": "k8s_scale_deployment",
    "kubernetes pods": "k8s_list_pods",
    "error logs of a service": "get_logs",
    "download link for s3 object": "s3_presign_url",
    "prometheus promql": "query_metrics",
    "deploy to production": "deploy_release",
    "flights from Berlin to Rome": "search_flights",
    "weather forecast": "get_weather",
    "dim the lights": "turn_light",
    "translation into another language": "translate_text",
}

# Written after the weights were set, mostly in other words than those of the tools. The weights are not to follow them.
PARAPHRASES = {
    "mark newsletter as unwanted and stop getting it": "unsubscribe_newsletter",
    "write an email but do not send it yet": "save_draft",
    "attach files to a message": "send_email",
    "put appointment in calendar": "create_event",
    "postpone the meeting": "update_event",
    "call off an event": "cancel_event",
    "free time for everybody next week": "find_free_slot",
    "colleague time zone": "get_working_hours",
    "rm file": "deleteFile",
    "duplicate a file": "copyFile",
    "search text in files": "searchFileContents",
    "notify when a directory changes": "watchDirectory",
    "push commits to origin": "git_push",
    "file an issue in the tracker": "create_issue",
    "squash and merge": "merge_pull_request",
    "search source code": "search_code",
    "insert rows into table": "sql_execute",
    "restore database from dump": "restore_backup",
    "speed up query with an index": "create_index",
    "blocked sessions kill": "kill_connection",
    "redeem coupon": "apply_coupon",
    "put product into basket": "add_to_cart",
    "cancel my order": "cancel_order",
    "product availability in stock": "get_product",
    "wire money to another account": "transfer_money",
    "reimburse travel costs": "submit_expense",
    "bank transactions last month": "list_transactions",
    "profit and loss statement": "get_profit_and_loss",
    "call in sick": "report_sick",
    "new hire laptop and accounts": "onboard_employee",
    "publish job opening": "create_job_posting",
    "hours worked on project": "log_working_time",
    "roll back deployment": "k8s_rollback",
    "upload to s3 bucket": "s3_upload",
    "page the on-call team when metric too high": "create_alert",
    "new password for secret": "rotate_secret",
    "route from home to work by bike": "get_directions",
    "table at an italian restaurant": "find_restaurant",
    "heating temperature in living room": "set_thermostat",
    "hire a car at the airport": "rent_car",
}


def _tool(line):
    name, description, parameters = line.split(" | ")
    pairs = (each.split(": ", 1) for each in parameters.split("; "))
    properties = {key: {"type": "string", "description": text} for key, text in pairs}
    schema = {"type": "object", "properties": properties}
    return make_definition(name=name, description=description, parameters=schema)


CATALOG = [Entry.of(_tool(line), *group) for group, lines in DOMAINS.items() for line in lines.strip().splitlines()]
